//! The lab as a whole: what was fetched and installed, ready to build guests.

use crate::accelerator::Engines;
use crate::arch::Arch;
use crate::cache::{Cache, CacheError};
use crate::guest::Guest;
use crate::kernel::{Kernel, KernelChoice, KernelError};
use crate::layout::Layout;
use crate::tools::{Tools, ToolsError};

/// Variable that makes tests leave the lab alone when it is `skip`, even under `CI=true`; `cargo
/// xtask test --skip-lab` sets it.
pub const TEST_VARIABLE: &str = "NODEWISE_LAB";

/// Why no guest can be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no cache folder.
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Tools(#[from] ToolsError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// Everything that a guest needs but its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lab {
    pub tools: Tools,
    /// The kernel that its guests boot.
    pub kernel: Kernel,
    /// Engine that runs its guests; TCG unless another choice is made.
    pub engines: Engines,
}

impl Lab {
    /// Finds what guests need.
    ///
    /// # Errors
    /// Something is missing; the message names it and the command that fetches it.
    pub fn find(choice: &KernelChoice) -> Result<Self, LabError> {
        let cache = Cache::locate()?;
        Ok(Self {
            tools: Tools::find()?,
            kernel: Kernel::find(&cache, choice, Arch::X86)?,
            engines: Engines::default(),
        })
    }

    /// The lab for a test that needs it. `Err` is the one line to print when the test cannot run
    /// here.
    ///
    /// # Errors
    /// The lab is not set up, or `NODEWISE_LAB=skip` asks to leave it alone.
    ///
    /// # Panics
    /// The lab is not set up and `CI` is `true`: there a test that cannot run has failed.
    pub fn for_test(choice: &KernelChoice) -> Result<Self, String> {
        for_test(|| Self::find(choice))
    }

    /// A guest with these nodes.
    pub fn guest(&self, layout: Layout) -> Guest {
        let mut guest = Guest::new(layout, self.kernel.clone(), self.tools.clone());
        guest.engines = self.engines.clone();
        guest
    }
}

/// A lab for a test that needs it, as [`Lab::for_test`] says.
pub(crate) fn for_test<T>(find: impl FnOnce() -> Result<T, LabError>) -> Result<T, String> {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
    if is(TEST_VARIABLE, "skip") {
        return Err(format!("skipped: {TEST_VARIABLE}=skip"));
    }
    match find() {
        Ok(lab) => Ok(lab),
        Err(error) if is("CI", "true") => panic!("this test needs the lab: {error}"),
        Err(error) => Err(format!("skipped: {error}")),
    }
}
