fn first() {
    a();
    b();
}

fn second() {
    a();
    c();
}
