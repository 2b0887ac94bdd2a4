//! Metrics for a Prometheus on this machine: one answer at a time, on a loopback address.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nodewise_machine::printable::io_words;
use nodewise_view::export::Exposition;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::failure::{Failure, Outcome};
use crate::{measuring, output};

/// A reader that is slower than this is left: others wait behind it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest head of a request; Prometheus sends a fraction of it.
const LONGEST_HEAD: usize = 8 << 10;

/// Answers requests until Ctrl-C.
///
/// # Errors
/// An address that cannot be listened on.
pub(super) fn listen(address: SocketAddr, mut metrics: impl FnMut(Exposition) -> String) -> Outcome {
    let interrupt = measuring::interrupt()?;
    let refused = |error: io::Error| {
        Failure::cannot(format_args!("--listen: cannot listen on {address}: {}", io_words(&error)))
    };
    let listener = TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    // Port 0 is any that is free.
    let address = listener.local_addr().map_err(refused)?;
    output::say(&format!("metrics at http://{address}/metrics until Ctrl-C"));
    while !interrupt.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&listener, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(refused(error.into())),
        }
        // A client may have gone again, or a signal came instead of one.
        if let Ok((stream, _)) = listener.accept() {
            // What goes wrong with one client is that client's loss.
            let _ = answer(stream, &mut metrics);
        }
    }
    Ok(0)
}

fn answer(mut stream: TcpStream, metrics: &mut impl FnMut(Exposition) -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(&mut stream)?;
    let response = match Request::parse(&head) {
        Request::Metrics(exposition) => response("200 OK", media_type(exposition), &metrics(exposition)),
        Request::OtherPath => response("404 Not Found", PLAIN, "metrics are at /metrics\n"),
        Request::OtherMethod => response("405 Method Not Allowed", PLAIN, "only GET is answered\n"),
        Request::Unreadable => response("400 Bad Request", PLAIN, "this is not a request of HTTP\n"),
    };
    stream.write_all(response.as_bytes())?;
    stream.flush()
}

/// Reads a request up to its empty line.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() < LONGEST_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => break,
            length => head.extend_from_slice(&buffer[..length]),
        }
    }
    Ok(head)
}

/// A request, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Metrics(Exposition),
    OtherPath,
    OtherMethod,
    Unreadable,
}

impl Request {
    fn parse(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Self::Unreadable;
        };
        if !version.starts_with("HTTP/1.") {
            return Self::Unreadable;
        }
        if method != "GET" {
            return Self::OtherMethod;
        }
        if path.split('?').next() != Some("/metrics") {
            return Self::OtherPath;
        }
        let accepts = lines.filter_map(|line| line.split_once(':'));
        let mut accepts = accepts.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
        let open = accepts.any(|(_, types)| types.contains("application/openmetrics-text"));
        Self::Metrics(if open { Exposition::OpenMetrics } else { Exposition::Text })
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

const fn media_type(exposition: Exposition) -> &'static str {
    match exposition {
        Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
        Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
    }
}

fn response(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_request_is_answered_in_the_format_it_accepts() {
        let check =
            |head: &str, expected: Request| assert_eq!(Request::parse(head.as_bytes()), expected, "{head}");
        let open = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
        check(
            &format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{open}\r\n\r\n"),
            Request::Metrics(Exposition::OpenMetrics),
        );
        check("GET /metrics?a=b HTTP/1.0\r\naccept: text/plain\r\n\r\n", Request::Metrics(Exposition::Text));
        check("GET / HTTP/1.1\r\n\r\n", Request::OtherPath);
        check("POST /metrics HTTP/1.1\r\n\r\n", Request::OtherMethod);
        check("GET /metrics", Request::Unreadable);
        check("", Request::Unreadable);
    }

    proptest! {
        #[test]
        fn any_request_is_survived(head in any::<Vec<u8>>()) {
            Request::parse(&head);
        }
    }
}
