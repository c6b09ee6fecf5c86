//! What a write changes, what it keeps, and what it leaves when it fails.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::time::Duration;

use jail::{PathError, Roots, remove_stale_temps};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::geteuid;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::support::{Fixture, NOBODY, give_away, mode, names, on_own_thread, set_mode, unprivileged};

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_write_replaces_the_content_and_leaves_nothing_else() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    let mut lock = fixture.ask("file").unwrap().lock_for_write().unwrap();
    assert_eq!(lock.contents().unwrap().unwrap(), b"old");
    let replaced = lock.replace(b"new\r\n\0").unwrap();
    assert_eq!((replaced.created, replaced.in_place, replaced.notes), (false, false, vec![]));
    assert_eq!(replaced.metadata.size, 6);
    assert_eq!(lock.contents().unwrap().unwrap(), b"new\r\n\0");
    lock.replace(b"").unwrap();
    assert_eq!(content(&path), "");
    assert_eq!(fixture.names(""), ["file"]);
}

#[test]
fn a_new_file_gets_what_the_umask_leaves() {
    let fixture = Fixture::new();
    let check = |umask: u32, expected: u32| {
        let name = format!("new-{umask:o}");
        on_own_thread(|| {
            // A umask of this thread's own.
            #[allow(unsafe_code)]
            // SAFETY: only the file-system attributes of this thread are unshared, no memory and no descriptors.
            unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
            rustix::process::umask(Mode::from_raw_mode(umask));
            assert!(fixture.replace(&name, "x").unwrap().created);
        });
        assert_eq!(mode(&fixture.repo(&name)), expected, "{umask:o}");
    };
    check(0o022, 0o644);
    check(0o002, 0o664);
    check(0o077, 0o600);
    check(0o000, 0o666);
}

#[test]
fn mode_owner_and_times_are_kept_apart_from_the_modification() {
    let fixture = Fixture::new();
    let check = |bits: u32| {
        let path = fixture.write("file", "old");
        if geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        set_mode(&path, bits);
        let before = fs::metadata(&path).unwrap();
        let replaced = fixture.replace("file", "new").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert!(replaced.notes.is_empty(), "{:?}", replaced.notes);
        assert_eq!(mode(&path), bits, "{bits:o}");
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(content(&path), "new");
        assert_ne!(after.ino(), before.ino());
    };
    for bits in [0o755, 0o664, 0o600, 0o640, 0o4750, 0o2755] {
        check(bits);
    }
}

#[test]
fn an_owner_that_cannot_be_kept_is_reported() {
    if !geteuid().is_root() {
        return; // Only root can set the scene: a file of someone else that one may write.
    }
    let fixture = Fixture::new();
    let path = fixture.write("shared", "old");
    give_away(&fixture.repo(""));
    chown(&path, Some(12_345), Some(12_345)).unwrap();
    set_mode(&path, 0o4666);
    let replaced = unprivileged(|| fixture.replace("shared", "new").unwrap());
    assert_eq!(content(&path), "new");
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.gid(), mode(&path)), (NOBODY, NOBODY, 0o666));
    let notes = replaced.notes.join("; ");
    for lost in ["owner (uid 12345)", "group (gid 12345)", "set-id bits"] {
        assert!(notes.contains(lost), "{notes}");
    }
}

#[test]
fn extended_attributes_and_access_lists_are_kept() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    xattr::set(&path, "user.key", b"value").unwrap();
    xattr::set(&path, "user.empty", b"").unwrap();
    xattr::set(&path, "system.posix_acl_access", &access_list(NOBODY)).unwrap();
    let bits = mode(&path);
    let replaced = fixture.replace("file", "new").unwrap();
    assert!(replaced.notes.is_empty(), "{:?}", replaced.notes);
    assert_eq!(xattr::get(&path, "user.key").unwrap().unwrap(), b"value");
    assert_eq!(xattr::get(&path, "user.empty").unwrap().unwrap(), b"");
    assert_eq!(xattr::get(&path, "system.posix_acl_access").unwrap().unwrap(), access_list(NOBODY));
    assert_eq!((content(&path).as_str(), mode(&path)), ("new", bits));
}

#[test]
fn a_default_access_list_reaches_new_files_only() {
    let fixture = Fixture::new();
    let old = fixture.write("old", "old");
    xattr::set(fixture.repo(""), "system.posix_acl_default", &access_list(NOBODY)).unwrap();
    fixture.replace("old", "new").unwrap();
    assert_eq!(xattr::get(&old, "system.posix_acl_access").unwrap(), None);
    fixture.replace("made", "new").unwrap();
    assert!(xattr::get(fixture.repo("made"), "system.posix_acl_access").unwrap().is_some());
    // 0666 under the list's mask of rw-: no umask is taken off.
    assert_eq!(mode(&fixture.repo("made")), 0o664);
}

/// `u::rw- u:<uid>:rw- g::r-- m::rw- o::r--` as the kernel stores it.
fn access_list(uid: u32) -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    [
        2_u32.to_le_bytes().to_vec(),
        entry(0x01, 6, none),
        entry(0x02, 6, uid),
        entry(0x04, 4, none),
        entry(0x10, 6, none),
        entry(0x20, 4, none),
    ]
    .concat()
}

#[test]
fn a_link_inside_the_root_is_kept_and_its_target_written() {
    let fixture = Fixture::new();
    fixture.write("real.txt", "old");
    fixture.link("real.txt", "link");
    fixture.link(fixture.repo("link"), "second");
    let lock = fixture.ask("second").unwrap().lock_for_write().unwrap();
    assert_eq!(lock.path().to_string(), "real.txt");
    drop(lock);
    let replaced = fixture.replace("second", "new").unwrap();
    assert!(replaced.notes.is_empty(), "{:?}", replaced.notes);
    assert_eq!(content(&fixture.repo("real.txt")), "new");
    assert!(fixture.repo("link").is_symlink() && fixture.repo("second").is_symlink());
    assert!(!fixture.repo("real.txt").is_symlink());
}

#[test]
fn a_file_with_two_names_keeps_both() {
    let fixture = Fixture::new();
    let path = fixture.write("a", "old content, the longer one");
    let other = fixture.repo("b");
    fs::hard_link(&path, &other).unwrap();
    for text in ["short", "longer than what was there before it"] {
        let replaced = fixture.replace("a", text).unwrap();
        assert!(replaced.in_place);
        assert!(replaced.notes[0].contains("2 names"), "{:?}", replaced.notes);
        assert_eq!((content(&path).as_str(), content(&other).as_str()), (text, text));
        assert_eq!(fs::metadata(&path).unwrap().ino(), fs::metadata(&other).unwrap().ino());
    }
    assert_eq!(fixture.names(""), ["a", "b"]);
}

#[test]
fn a_directory_that_takes_no_new_files_leads_to_writing_in_place() {
    let fixture = Fixture::new();
    let path = fixture.write("dir/file", "old");
    give_away(&fixture.repo(""));
    set_mode(&fixture.repo("dir"), 0o555);
    let before = fs::metadata(&path).unwrap().ino();
    let (replaced, created) = unprivileged(|| {
        (fixture.replace("dir/file", "new").unwrap(), fixture.replace("dir/other", "x").unwrap_err())
    });
    assert!(replaced.in_place);
    assert!(replaced.notes[0].contains("takes no new files"), "{:?}", replaced.notes);
    assert_eq!(content(&path), "new");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert!(matches!(created, PathError::Permission { .. }), "{created}");
    set_mode(&fixture.repo("dir"), 0o755);
    assert_eq!(fixture.names("dir"), ["file"]);
}

#[test]
fn a_file_in_a_sticky_directory_of_someone_else_is_written_in_place() {
    if !geteuid().is_root() {
        return; // Only root can set the scene.
    }
    let fixture = Fixture::new();
    let path = fixture.write("sticky/file", "old");
    set_mode(&fixture.repo("sticky"), 0o1777);
    set_mode(&path, 0o666);
    let replaced = unprivileged(|| fixture.replace("sticky/file", "new").unwrap());
    assert!(replaced.in_place && replaced.notes[0].contains("could not be swapped"), "{:?}", replaced.notes);
    assert_eq!((content(&path).as_str(), fs::metadata(&path).unwrap().uid()), ("new", 0));
    assert_eq!(fixture.names("sticky"), ["file"]);
}

#[test]
fn a_file_one_may_not_write_is_not_replaced() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    give_away(&fixture.repo(""));
    set_mode(&path, 0o444);
    let error = unprivileged(|| fixture.replace("file", "new").unwrap_err());
    assert!(matches!(error, PathError::Permission { .. }), "{error}");
    assert_eq!((content(&path).as_str(), mode(&path)), ("old", 0o444));
}

#[test]
fn a_file_one_may_not_read_can_be_overwritten_blindly() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    give_away(&fixture.repo(""));
    set_mode(&path, 0o200);
    unprivileged(|| {
        let mut lock = fixture.ask("file").unwrap().lock_for_write().unwrap();
        assert!(lock.contents().is_err());
        lock.replace(b"new").unwrap();
    });
    assert_eq!(mode(&path), 0o200);
    set_mode(&path, 0o600);
    assert_eq!(content(&path), "new");
}

#[test]
fn a_write_that_fails_half_way_leaves_the_old_content_and_no_temporary_file() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    let full = |file: &mut fs::File| {
        file.write_all(b"half")?;
        Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()))
    };
    for name in ["file", "missing"] {
        let mut lock = fixture.ask(name).unwrap().lock_for_write().unwrap();
        let error = lock.replace_with(full).unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
    }
    assert_eq!(content(&path), "old");
    assert_eq!(fixture.names(""), ["file"]);
    fs::hard_link(&path, fixture.repo("second")).unwrap();
    fixture.ask("file").unwrap().lock_for_write().unwrap().replace_with(full).unwrap_err();
    assert_eq!(content(&path), "old");
}

#[test]
fn a_full_file_system_leaves_the_old_content() {
    let fixture = Fixture::new();
    let mounted = on_own_thread(|| {
        #[allow(unsafe_code)]
        // SAFETY: this thread gets file-system attributes and a mount table of its own; no memory is unshared.
        if unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }.is_err() {
            return false; // Mounting needs privileges; elsewhere the test above stands for this one.
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        let small = fixture.repo("small");
        fs::create_dir(&small).unwrap();
        mount("tmpfs", &small, "tmpfs", MountFlags::empty(), Some(c"size=64k")).unwrap();
        // Opened again: the handles from before lead through the old mount table.
        let roots = Roots::open(&["repo".to_owned()], fixture.folder()).unwrap();
        let replace = |path: &str, content: &str| {
            roots.resolve(path, Path::new("")).unwrap().lock_for_write().unwrap().replace(content.as_bytes())
        };
        let old = "o".repeat(24 * 1024);
        let path = fixture.write("small/file", &old);
        let check = |name: &str, kibibytes: usize| {
            let error = replace(name, &"x".repeat(kibibytes * 1024)).unwrap_err();
            assert!(error.to_string().contains("no space left"), "{error}");
            assert_eq!(content(&path), old);
        };
        check("small/file", 100);
        check("small/new", 100);
        // Written in place: there is room for the new content once, but not to make the file as long as that.
        fs::hard_link(&path, fixture.repo("small/second")).unwrap();
        check("small/file", 36);
        assert_eq!(names(&small), ["file", "second"]);
        true
    });
    assert!(mounted || !geteuid().is_root());
}

#[test]
fn a_change_by_a_program_without_locks_is_not_overwritten() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    let check = |change: &dyn Fn(), survivor: Option<&str>| {
        fs::write(&path, "old").unwrap();
        let mut lock = fixture.ask("file").unwrap().lock_for_write().unwrap();
        assert_eq!(lock.contents().unwrap().unwrap(), b"old");
        change();
        let error = lock.replace(b"new").unwrap_err();
        assert_eq!(error.code(), Some("stale"), "{error}");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), survivor);
        assert!(fixture.names("").iter().all(|name| name == "file"));
    };
    check(&|| fs::write(&path, "old and more").unwrap(), Some("old and more"));
    check(&|| fs::write(&path, "odd").unwrap(), Some("odd"));
    check(&|| fs::remove_file(&path).unwrap(), None);
    let swapped = || {
        fs::write(fixture.outside("other"), "swapped").unwrap();
        fs::rename(fixture.outside("other"), &path).unwrap();
    };
    check(&swapped, Some("swapped"));
    let back_dated = || {
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "odd").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    };
    check(&back_dated, Some("odd"));
}

#[test]
fn a_file_that_appears_meanwhile_is_not_overwritten() {
    let fixture = Fixture::new();
    let mut lock = fixture.ask("new").unwrap().lock_for_write().unwrap();
    assert!(!lock.exists());
    assert_eq!(lock.contents().unwrap(), None);
    fs::write(fixture.repo("new"), "theirs").unwrap();
    assert_eq!(lock.replace(b"ours").unwrap_err().code(), Some("exists"));
    assert_eq!(content(&fixture.repo("new")), "theirs");
    assert_eq!(fixture.names(""), ["new"]);
}

#[test]
fn a_lock_that_someone_keeps_ends_the_wait() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "old");
    let theirs = fs::File::open(&path).unwrap();
    flock(&theirs, FlockOperation::LockExclusive).unwrap();
    let asked = fixture.ask("file").unwrap();
    let refused = asked.lock_for_write_within(Duration::from_millis(5)).unwrap_err();
    assert!(matches!(refused, PathError::Locked { .. }), "{refused}");
    drop(theirs);
    assert!(asked.lock_for_write_within(Duration::from_millis(5)).is_ok());
}

#[test]
fn temporary_files_of_the_dead_are_removed_and_those_of_the_living_kept() {
    let fixture = Fixture::new();
    for name in [".ph-dead1.tmp", ".ph-dead2.tmp", ".ph-alive.tmp", ".ph-no temp.tmp", "file"] {
        fixture.write(name, "");
    }
    fixture.write(".ph-dir.tmp/below/file", "of an interrupted copy");
    fixture.write(".ph-spare.old", "waits to be put back");
    fixture.link("file", ".ph-link.tmp");
    let alive = fs::File::open(fixture.repo(".ph-alive.tmp")).unwrap();
    flock(&alive, FlockOperation::LockExclusive).unwrap();
    let root = fixture.ask(".").unwrap();
    assert_eq!(remove_stale_temps(&root).unwrap(), 3);
    assert_eq!(
        fixture.names(""),
        [".ph-alive.tmp", ".ph-link.tmp", ".ph-no temp.tmp", ".ph-spare.old", "file"]
    );
    let mut lock = fixture.ask("file").unwrap().lock_for_write().unwrap();
    lock.replace_with(|file| {
        // A cleaner that comes by in the middle of a write.
        assert_eq!(remove_stale_temps(&root).unwrap(), 0);
        file.write_all(b"whole")
    })
    .unwrap();
    assert_eq!(content(&fixture.repo("file")), "whole");
}

#[test]
fn a_write_removes_what_the_dead_left_beside_it() {
    let fixture = Fixture::new();
    for name in ["dir/.ph-dead.tmp", "dir/file", "other/.ph-dead.tmp"] {
        fixture.write(name, "");
    }
    fixture.replace("dir/file", "new").unwrap();
    assert_eq!(fixture.names("dir"), ["file"]);
    assert_eq!(fixture.names("other"), [".ph-dead.tmp"]);
}
