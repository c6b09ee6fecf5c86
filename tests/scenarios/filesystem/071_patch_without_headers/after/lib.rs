fn first() {
    x();
    b();
}

fn second() {
    a();
    b();
    c();
}
