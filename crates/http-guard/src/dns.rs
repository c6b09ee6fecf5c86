//! Questions to a name server, and its answers, as bytes. Pure: nothing is sent here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most names that lead to one another in an answer.
const LONGEST_CHAIN: usize = 16;
/// The most pointers in one name.
const MOST_POINTERS: usize = 32;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
}

impl Kind {
    fn code(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

const CNAME: u16 = 5;
const INTERNET: u16 = 1;

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The addresses; none when the name has none of this kind.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// The answer is longer than a datagram: ask over TCP.
    Truncated,
    /// The server will not or cannot answer; its code.
    Failed(u8),
}

/// The question for the addresses of `name`, a checked name.
pub(crate) fn question(id: u16, name: &str, kind: Kind) -> Vec<u8> {
    let mut message = Vec::with_capacity(18 + name.len());
    message.extend(id.to_be_bytes());
    // Recursion desired; one question, nothing else.
    message.extend([0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        // Labels of checked names have 1 to 63 bytes.
        message.push(u8::try_from(label.len()).unwrap_or(0));
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.code().to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    message
}

/// Reads a message as the answer to a question. `None` when it is not: another id, another question, or no message.
pub(crate) fn answer(message: &[u8], id: u16, name: &str, kind: Kind) -> Option<Answer> {
    let mut reader = Reader { message, at: 0 };
    let (found_id, flags) = (reader.u16()?, reader.u16()?);
    let counts = (reader.u16()?, reader.u16()?);
    reader.skip(4)?;
    let is_answer = flags & 0x8000 != 0 && flags & 0x7800 == 0;
    if found_id != id || !is_answer || counts.0 != 1 {
        return None;
    }
    let asked = (reader.name()?, reader.u16()?, reader.u16()?);
    if asked != (name.to_owned(), kind.code(), INTERNET) {
        return None;
    }
    if flags & 0x0200 != 0 {
        return Some(Answer::Truncated);
    }
    match u8::try_from(flags & 0xf).unwrap_or(u8::MAX) {
        0 => records(&mut reader, counts.1, name, kind).map(Answer::Addresses),
        3 => Some(Answer::NoSuchName),
        code => Some(Answer::Failed(code)),
    }
}

struct Alias {
    owner: String,
    target: String,
}

/// The addresses that belong to `name`, or to a name that it is an alias of.
fn records(reader: &mut Reader<'_>, count: u16, name: &str, kind: Kind) -> Option<Vec<IpAddr>> {
    let (mut aliases, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let owner = reader.name()?;
        let (record, class) = (reader.u16()?, reader.u16()?);
        reader.skip(4)?;
        let length = usize::from(reader.u16()?);
        let data_at = reader.at;
        reader.skip(length)?;
        let data = reader.message.get(data_at..reader.at)?;
        match record {
            _ if class != INTERNET => {}
            CNAME => {
                let target = Reader { message: reader.message, at: data_at }.name()?;
                aliases.push(Alias { owner, target });
            }
            code if code == kind.code() => addresses.push((owner, address(data)?)),
            _ => {}
        }
    }
    let names = chain(name, &aliases);
    Some(
        addresses
            .into_iter()
            .filter(|(owner, _)| names.contains(owner))
            .map(|(_, address)| address)
            .collect(),
    )
}

fn chain(name: &str, aliases: &[Alias]) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    while names.len() < LONGEST_CHAIN {
        let last = names.last();
        let next = aliases.iter().find(|alias| Some(&alias.owner) == last).map(|alias| alias.target.clone());
        match next {
            Some(next) if !names.contains(&next) => names.push(next),
            _ => break,
        }
    }
    names
}

fn address(data: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(data) {
        return Some(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(data).ok().map(|octets| Ipv6Addr::from(octets).into())
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u8(&mut self) -> Option<u8> {
        let byte = *self.message.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.u8()?, self.u8()?]))
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.message.len())?;
        Some(())
    }

    /// A name in lower case, following pointers, which only lead back.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let (mut at, mut pointers, mut end) = (self.at, 0, None);
        loop {
            let length = usize::from(*self.message.get(at)?);
            match length {
                0 => break,
                1..=63 => {
                    let label = self.message.get(at + 1..at + 1 + length)?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
                    at += 1 + length;
                }
                0xc0.. => {
                    let target = (length & 0x3f) << 8 | usize::from(*self.message.get(at + 1)?);
                    end.get_or_insert(at + 2);
                    pointers += 1;
                    if target >= at || pointers > MOST_POINTERS {
                        return None;
                    }
                    at = target;
                }
                _ => return None,
            }
            if name.len() > 255 {
                return None;
            }
        }
        self.at = end.unwrap_or(at + 1);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The question of `question` turned into an answer with these records: owner, type, data.
    fn reply(id: u16, name: &str, kind: Kind, flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let mut message = question(id, name, kind);
        message[2..4].copy_from_slice(&flags.to_be_bytes());
        message[7] = u8::try_from(records.len()).unwrap();
        for (owner, record, data) in records {
            message.extend(*owner);
            message.extend(record.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 0]);
            message.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            message.extend(*data);
        }
        message
    }

    const FINE: u16 = 0x8180;
    const OWNER: &[u8] = &[0xc0, 12];

    #[test]
    fn addresses_of_the_name_are_read() {
        let message =
            reply(7, "a.example", Kind::A, FINE, &[(OWNER, 1, &[1, 2, 3, 4]), (OWNER, 1, &[10, 0, 0, 1])]);
        let expected = vec!["1.2.3.4".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        assert_eq!(answer(&message, 7, "a.example", Kind::A), Some(Answer::Addresses(expected)));
    }

    #[test]
    fn aliases_are_followed_and_foreign_records_are_not_taken() {
        let alias = b"\x01b\x07example\x00";
        let foreign = b"\x01c\x07example\x00";
        let records: [(&[u8], u16, &[u8]); 3] =
            [(OWNER, 5, alias), (alias, 1, &[1, 1, 1, 1]), (foreign, 1, &[2, 2, 2, 2])];
        let message = reply(7, "a.example", Kind::A, FINE, &records);
        let expected = Answer::Addresses(vec!["1.1.1.1".parse().unwrap()]);
        assert_eq!(answer(&message, 7, "a.example", Kind::A), Some(expected));
    }

    #[test]
    fn what_was_not_asked_is_no_answer() {
        let message = reply(7, "a.example", Kind::A, FINE, &[(OWNER, 1, &[1, 2, 3, 4])]);
        assert_eq!(answer(&message, 8, "a.example", Kind::A), None);
        assert_eq!(answer(&message, 7, "b.example", Kind::A), None);
        assert_eq!(answer(&message, 7, "a.example", Kind::Aaaa), None);
        assert_eq!(answer(&question(7, "a.example", Kind::A), 7, "a.example", Kind::A), None);
    }

    #[test]
    fn failures_are_told_apart() {
        let said = |flags| answer(&reply(7, "a.example", Kind::A, flags, &[]), 7, "a.example", Kind::A);
        assert_eq!(said(0x8183), Some(Answer::NoSuchName));
        assert_eq!(said(0x8182), Some(Answer::Failed(2)));
        assert_eq!(said(0x8380), Some(Answer::Truncated));
        assert_eq!(said(FINE), Some(Answer::Addresses(Vec::new())));
    }

    #[test]
    fn no_prefix_and_no_loop_confuses_the_reader() {
        let alias = &[0xc0, 12];
        let message = reply(7, "a.example", Kind::A, FINE, &[(OWNER, 5, alias), (OWNER, 1, &[1, 2, 3, 4])]);
        for end in 0..message.len() {
            assert_eq!(answer(&message[..end], 7, "a.example", Kind::A), None, "{end}");
        }
        let mut circle = message.clone();
        let owner = question(7, "a.example", Kind::A).len();
        circle[owner..owner + 2].copy_from_slice(&[0xc0, u8::try_from(owner).unwrap()]);
        assert_eq!(answer(&circle, 7, "a.example", Kind::A), None);
    }
}
