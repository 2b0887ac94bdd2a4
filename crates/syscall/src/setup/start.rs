//! Starting a program under a setup, and trying one.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;

use super::{Failure, Setup, Step};
use crate::error::{CallError, Errno};
use crate::huge;
use crate::inherited;

/// Why a program could not be started under a setup.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The setup could not be applied; the program has not started.
    #[error(transparent)]
    Setup(#[from] CallError),
    /// The setup could be applied, but the program (or the thread to try on) could not be started.
    #[error(transparent)]
    Start(#[from] io::Error),
}

impl From<StartError> for io::Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Setup(error) => error.into(),
            StartError::Start(error) => error,
        }
    }
}

impl Setup {
    /// Learns whether the setup would work, without touching the caller: CPUs and policy are set
    /// on a thread that ends at once. Huge pages belong to the whole process, so they are only
    /// read: that shows a filter, but not a missing [`huge::TransparentHuge::OnlyAdvised`].
    ///
    /// # Errors
    /// The call that would fail, or a thread that could not be started.
    pub fn try_on_scratch_thread(&self) -> Result<(), StartError> {
        if self.transparent_huge.is_some() {
            huge::transparent_huge()?;
        }
        let tried = thread::scope(|scope| {
            let steps = [Step::Cpus, Step::Policy];
            let scratch = thread::Builder::new().spawn_scoped(scope, move || self.apply_steps(&steps))?;
            io::Result::Ok(scratch.join().expect("a thread that makes two system calls does not panic"))
        })?;
        tried.map_err(|failure| self.call_error(failure).into())
    }

    /// Becomes the program: applies the setup to the calling thread and replaces the process. The
    /// program gets SIGPIPE and the standard streams as this process got them (see
    /// [`inherited`](crate::inherited)). Returns only when that failed, and then with the earlier
    /// parts of the setup applied.
    #[expect(unsafe_code, reason = "pre_exec is the only moment after the standard library's own changes")]
    pub fn exec(&self, mut command: Command) -> StartError {
        // SAFETY: the hook makes system calls and nothing else.
        unsafe { command.pre_exec(inherited::hand_on) };
        match self.apply() {
            Ok(()) => command.exec().into(),
            Err(error) => error.into(),
        }
    }

    /// Starts the program as a child that has applied the setup; the caller stays as it is.
    ///
    /// Takes the command permanently: a command keeps what was hung into it, and would apply this
    /// setup again, before any other, if it were started a second time.
    ///
    /// # Errors
    /// The call that failed in the child, or why the program could not be started.
    #[expect(unsafe_code, reason = "pre_exec is where the standard library lets a child prepare itself")]
    pub fn spawn(&self, mut command: Command) -> Result<Child, StartError> {
        // An empty setup too: without a hook the standard library starts programs in a quicker way
        // (posix_spawn: 0.2 ms of 0.7 less for `true`), and a comparison of placements would take
        // that for an effect of having none.
        let setup = self.clone();
        let hook = move || setup.apply_steps(&Step::ALL).map_err(encode);
        // SAFETY: between fork and exec the hook makes at most three system calls on memory
        // that was prepared before; it allocates nothing, takes no lock, and a failure becomes
        // an io::Error made of one number.
        unsafe { command.pre_exec(hook) };
        command.spawn().map_err(|error| match decode(&error) {
            Some(failure) => self.call_error(failure).into(),
            None => error.into(),
        })
    }
}

/// Error numbers stay below this (`MAX_ERRNO` is 4095).
const STEP_SHIFT: u32 = 16;

/// A failed step as a number: the standard library brings one number from the child to the parent,
/// and uses the same way for an `exec` that failed, which leaves the upper half zero.
fn encode(failure: Failure) -> io::Error {
    io::Error::from_raw_os_error((failure.step as i32) << STEP_SHIFT | failure.errno.number())
}

fn decode(error: &io::Error) -> Option<Failure> {
    let number = error.raw_os_error()?;
    let step = Step::ALL.into_iter().find(|step| *step as i32 == number >> STEP_SHIFT)?;
    Some(Failure { step, errno: Errno::new(number & ((1 << STEP_SHIFT) - 1)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_failed_exec_is_not_taken_for_a_failed_step() {
        for errno in [libc::ENOENT, libc::EACCES, libc::ENOEXEC, libc::E2BIG, 4095] {
            assert_eq!(decode(&io::Error::from_raw_os_error(errno)), None);
        }
        assert_eq!(decode(&io::Error::other("not a number")), None);
    }

    proptest! {
        #[test]
        fn a_failed_step_comes_back_from_the_child(step in 0usize..3, errno in 1i32..4096) {
            let failure = Failure { step: Step::ALL[step], errno: Errno::new(errno) };
            prop_assert_eq!(decode(&encode(failure)), Some(failure));
        }

        #[test]
        fn any_number_is_decoded_without_a_panic(number in any::<i32>()) {
            let _ = decode(&io::Error::from_raw_os_error(number));
        }
    }
}
