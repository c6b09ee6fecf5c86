fn main() {
    // TODO: tidy up
    run();
}
