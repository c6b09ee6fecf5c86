pub fn run() {
    todo!();
    // TODO: and this
    // TODO again
}
