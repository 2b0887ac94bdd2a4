//! The `nodewise` command.
fn main() {}
