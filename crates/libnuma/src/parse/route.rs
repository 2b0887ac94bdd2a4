//! The network interface through which a host is reached, for `ip:` in a list of nodes.

use core::ffi::{CStr, c_int, c_long, c_ulong};
use core::mem::{MaybeUninit, size_of};
use core::ptr::{self, null, null_mut};

use super::Message;
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::system::Text;

/// The name of an interface.
pub type Name = Text<64>;

/// The interface through which packets to a host go; a failure was warned of.
///
/// A datagram socket that is connected sends nothing; the kernel looks for the way and gives the
/// socket the address of the interface.
pub fn interface(host: &[u8]) -> Option<Name> {
    let Some(local) = local_address(host)? else {
        let host = Message::new().push(host);
        error::warn(warning::NO_ROUTE, Arguments::Text(host.c_str()));
        return None;
    };
    // The kernel reaches its own addresses through the loopback, whichever interface has them.
    let name = if local.is_host { Some(Name::new().push(b"lo")) } else { with_address(&local) };
    if name.is_none() {
        let host = Message::new().push(host);
        error::warn(warning::NO_INTERFACE, Arguments::Text(host.c_str()));
    }
    name
}

/// An address with its length.
struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
    /// Whether the address is that of the host, which is this machine then.
    is_host: bool,
}

impl Address {
    /// The bytes that name a host: those of the address without its port.
    fn host(&self) -> Option<[u8; 16]> {
        // SAFETY: the storage is large enough for an address of any family.
        unsafe { host_of((&raw const self.storage).cast()) }
    }
}

/// The bytes of an IPv4 or IPv6 address.
///
/// # Safety
/// `address` points to an address of the family that it says.
unsafe fn host_of(address: *const libc::sockaddr) -> Option<[u8; 16]> {
    // SAFETY: every address begins with its family.
    let family = unsafe { (*address).sa_family };
    let mut host = [0; 16];
    match c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says so. Not aligned in all cases, so it is copied.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            for (place, byte) in host.iter_mut().zip(address.sin_addr.s_addr.to_ne_bytes()) {
                *place = byte;
            }
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            host = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() }.sin6_addr.s6_addr;
        }
        _ => return None,
    }
    Some(host)
}

/// The address from which a host would be reached; `Some(None)` when it cannot be, `None` when the
/// name is not known, which was warned of.
fn local_address(host: &[u8]) -> Option<Option<Address>> {
    let name = Text::<1024>::new().push(host);
    // SAFETY: all zeros are valid hints: any family, kind and protocol.
    let mut hints: libc::addrinfo = unsafe { MaybeUninit::zeroed().assume_init() };
    hints.ai_socktype = libc::SOCK_DGRAM;
    let mut found: *mut libc::addrinfo = null_mut();
    // SAFETY: the name ends with NUL, and the result goes to a pointer of our own.
    let code = unsafe { libc::getaddrinfo(name.c_str().as_ptr(), null(), &hints, &mut found) };
    if code != 0 {
        // SAFETY: gai_strerror takes any code.
        let why = unsafe { libc::gai_strerror(code) };
        // SAFETY: its text ends with NUL and lives forever.
        let why = unsafe { CStr::from_ptr(why) };
        let host = Message::new().push(host);
        error::warn(warning::NO_HOST, Arguments::Texts(host.c_str(), why));
        return None;
    }
    let mut local = None;
    let mut next = found;
    // SAFETY: getaddrinfo gave a list that ends with NULL.
    while let (None, Some(entry)) = (&local, unsafe { next.as_ref() }) {
        local = reached_from(entry);
        next = entry.ai_next;
    }
    // SAFETY: the list comes from getaddrinfo and is not used again.
    unsafe { libc::freeaddrinfo(found) };
    Some(local)
}

/// The address of a socket that is connected to an address.
fn reached_from(to: &libc::addrinfo) -> Option<Address> {
    let kind = c_long::from(libc::SOCK_DGRAM | libc::SOCK_CLOEXEC);
    // SAFETY: the call takes numbers.
    let socket = unsafe { libc::syscall(libc::SYS_socket, c_long::from(to.ai_family), kind, 0 as c_long) };
    if socket < 0 {
        return None;
    }
    let length = to.ai_addrlen as c_ulong;
    // SAFETY: getaddrinfo gave an address of that length.
    let mut result = unsafe { libc::syscall(libc::SYS_connect, socket, to.ai_addr, length) };
    // SAFETY: all zeros are a valid address, of no family.
    let storage = unsafe { MaybeUninit::<libc::sockaddr_storage>::zeroed().assume_init() };
    let length_of_storage = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let mut address = Address { storage, length: length_of_storage, is_host: false };
    if result == 0 {
        let (place, length) = (&raw mut address.storage, &raw mut address.length);
        // SAFETY: the place has as many bytes as the length says.
        result = unsafe { libc::syscall(libc::SYS_getsockname, socket, place, length) };
    }
    kernel::close(socket as c_int);
    // SAFETY: getaddrinfo gave an address.
    let host = unsafe { host_of(to.ai_addr) };
    address.is_host = host.is_some() && host == address.host();
    (result == 0).then_some(address)
}

/// The interface that has an address.
fn with_address(local: &Address) -> Option<Name> {
    let wanted = local.host()?;
    let mut list: *mut libc::ifaddrs = null_mut();
    // SAFETY: the result goes to a pointer of our own.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return None;
    }
    let mut name = None;
    let mut next = list;
    // SAFETY: getifaddrs gave a list that ends with NULL.
    while let (None, Some(entry)) = (&name, unsafe { next.as_ref() }) {
        // SAFETY: an interface has an address of the family that it says, or none.
        let host = if ptr::eq(entry.ifa_addr, null()) { None } else { unsafe { host_of(entry.ifa_addr) } };
        if host == Some(wanted) {
            // SAFETY: an interface has a name that ends with NUL.
            name = Some(Name::new().push(unsafe { CStr::from_ptr(entry.ifa_name) }.to_bytes()));
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list comes from getifaddrs and is not used again.
    unsafe { libc::freeifaddrs(list) };
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// The addresses of this machine's interfaces.
    fn own_addresses() -> Vec<String> {
        let mut list: *mut libc::ifaddrs = null_mut();
        // SAFETY: the result goes to a pointer of our own.
        assert_eq!(unsafe { libc::getifaddrs(&mut list) }, 0);
        let mut found = Vec::new();
        let mut next = list;
        // SAFETY: getifaddrs gave a list that ends with NULL.
        while let Some(entry) = unsafe { next.as_ref() } {
            next = entry.ifa_next;
            // SAFETY: an address begins with its family.
            let Some(family) = (unsafe { entry.ifa_addr.as_ref() }).map(|address| address.sa_family) else {
                continue;
            };
            // SAFETY: the interface has an address of that family.
            let host = unsafe { host_of(entry.ifa_addr) };
            match (c_int::from(family), host) {
                (libc::AF_INET, Some([a, b, c, d, ..])) => found.push(Ipv4Addr::new(a, b, c, d).to_string()),
                // Link-local addresses need their interface to be named.
                (libc::AF_INET6, Some(host)) if !host.starts_with(&[0xfe, 0x80]) => {
                    found.push(Ipv6Addr::from(host).to_string());
                }
                _ => {}
            }
        }
        // SAFETY: the list comes from getifaddrs and is not used again.
        unsafe { libc::freeifaddrs(list) };
        found
    }

    #[test]
    fn own_addresses_are_reached_through_the_loopback() {
        for address in own_addresses() {
            let name = interface(address.as_bytes()).map(|name| name.bytes().to_vec());
            assert_eq!(name.as_deref(), Some(&b"lo"[..]), "{address}");
        }
    }
}
