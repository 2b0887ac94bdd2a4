//! When a server is ready for its client.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use nodewise_machine::printable::quote;
use regex_lite::Regex;

use crate::command::output::Output;

/// How long a connection to this machine may take.
const CONNECT: Duration = Duration::from_millis(200);

/// Sign by which a server is known to be ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// It accepts connections at this port of this machine.
    Port(u16),
    /// It has written something that matches.
    Output(Regex),
}

/// Why a text is neither, or why a server cannot be started with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadyError {
    /// No port has this number.
    #[error("{} is not a port: expected a number from 1 to 65535, or a regular expression", quote(.text))]
    Port {
        /// The data that was read.
        text: String,
    },
    #[error("{} is neither a port nor a regular expression: {reason}", quote(.text))]
    Syntax {
        /// The data that was read.
        text: String,
        reason: String,
    },
    /// Somebody else has the port.
    #[error("port {port} answers before the server is started: expected a free port")]
    Taken { port: u16 },
}

impl Ready {
    /// Reads a port, or a regular expression.
    ///
    /// # Errors
    /// A text that is neither.
    pub fn parse(text: &str) -> Result<Self, ReadyError> {
        let owned = || text.to_owned();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                Ok(port) if port > 0 => Ok(Self::Port(port)),
                _ => Err(ReadyError::Port { text: owned() }),
            };
        }
        if text.is_empty() {
            return Err(ReadyError::Port { text: owned() });
        }
        Regex::new(text)
            .map(Self::Output)
            .map_err(|error| ReadyError::Syntax { text: owned(), reason: error.to_string() })
    }

    /// Whether this can distinguish a server that was started from another.
    ///
    /// # Errors
    /// A port where somebody answers.
    pub(super) fn free(&self) -> Result<(), ReadyError> {
        match self {
            Self::Port(port) if accepts(*port) => Err(ReadyError::Taken { port: *port }),
            _ => Ok(()),
        }
    }

    /// Whether a server that writes there is ready now.
    pub(super) fn is_ready(&self, output: &Output) -> bool {
        match self {
            Self::Port(port) => accepts(*port),
            Self::Output(regex) => {
                regex.is_match(&output.stdout_end()) || regex.is_match(&output.stderr_end())
            }
        }
    }
}

impl std::fmt::Display for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Port(port) => write!(f, "nothing answers at port {port}"),
            Self::Output(regex) => write!(f, "nothing that it wrote matches {}", quote(regex.as_str())),
        }
    }
}

fn accepts(port: u16) -> bool {
    let here = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    here.iter().any(|address| TcpStream::connect_timeout(address, CONNECT).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = Ready::parse(text).map(|ready| ready.to_string()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn digits_are_a_port_and_anything_else_is_a_pattern() {
        check("5432", Ok("nothing answers at port 5432"));
        check("ready to accept", Ok("nothing that it wrote matches \"ready to accept\""));
        for text in ["0", "65536", ""] {
            let expected = format!(
                "\"{text}\" is not a port: expected a number from 1 to 65535, or a regular expression"
            );
            check(text, Err(&expected));
        }
        assert!(matches!(Ready::parse("("), Err(ReadyError::Syntax { .. })));
    }

    #[test]
    fn a_port_where_somebody_answers_is_taken() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(Ready::Port(port).free(), Err(ReadyError::Taken { port }));
        drop(listener);
        assert_eq!(Ready::Port(port).free(), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = Ready::parse(&text);
        }
    }
}
