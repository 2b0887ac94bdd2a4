//! The sensors and the clock of this machine, for what waits until it is cool.

use std::time::Duration;

use nodewise_experiment::cooling::Climate;
use nodewise_source::thermal;
use nodewise_source::tree::Tree;

/// Those of this machine.
pub struct Sensors {
    tree: Tree,
}

impl Sensors {
    /// The running machine.
    pub fn new() -> Self {
        Self { tree: Tree::live() }
    }
}

impl Climate for Sensors {
    fn millicelsius(&mut self) -> Option<i32> {
        thermal::cpu_millicelsius(&self.tree)
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}
