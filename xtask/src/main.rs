//! What is done to nodewise rather than by it.
fn main() {}
