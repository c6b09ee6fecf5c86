use serde_json::json;

use super::*;
use crate::archive::{Entry as ArchiveEntry, pack};
use crate::builder::{Builder, Described};

/// A folder with a release, a project and a cache.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a release whose programs are `content` and the name of their platform.
    fn release(&self, folder: &str, version: &str, content: &str) {
        let folder = self.path(folder);
        let described = Described {
            name: "x".into(),
            source: "github.com/o/provider-x".into(),
            category: "tool".into(),
            example: serde_json::Map::from_iter([("allowed_roots".to_owned(), json!(["."]))]),
        };
        let mut builder = Builder::new(&folder, version.parse().unwrap(), content).unwrap();
        for platform in [Platform::here(), "plan9_mips".parse().unwrap()] {
            let program = format!("{content} {platform}").into_bytes();
            builder.add(&described, &platform, program, &[]).unwrap();
        }
        builder.finish().unwrap();
        fs::remove_dir_all(folder.join("mirror")).unwrap();
    }

    fn request(&self) -> Request {
        Request {
            providers: Vec::new(),
            platforms: Vec::new(),
            project: self.path("project"),
            cache: PluginCache::new(self.path("cache")),
            replace: false,
        }
    }

    fn install_with(&self, folder: &str, request: &Request) -> Result<Installation, InstallError> {
        let releases = Release::open_all(&self.path(folder), &semver::VersionReq::STAR)?;
        let plan = Installation::plan(&releases, request)?;
        plan.apply()?;
        Ok(plan)
    }

    fn install(&self, folder: &str) -> Result<Installation, InstallError> {
        self.install_with(folder, &self.request())
    }

    fn program(&self, version: &str) -> PathBuf {
        let cache = PluginCache::new(self.path("cache"));
        cache.program("github.com/o/provider-x", &version.parse().unwrap(), &Platform::here())
    }

    fn lock_file(&self) -> String {
        fs::read_to_string(self.path("project/.agent/agent.lock.hcl")).unwrap()
    }
}

#[test]
fn a_release_is_put_in_the_cache_and_recorded() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    fs::create_dir(place.path("project")).unwrap();
    let plan = place.install("dist").unwrap();
    assert!(plan.changes().iter().all(Change::is_change));
    assert_eq!(plan.entries()[0].configuration["allowed_roots"], json!(["."]));

    let program = place.program("1.0.0");
    let content = format!("one {}", Platform::here());
    assert_eq!(fs::read_to_string(&program).unwrap(), content);
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o7777, 0o755);

    let row = LockFile::parse(&place.lock_file()).unwrap().row("x").unwrap().unwrap();
    assert_eq!(row.checksums[&Platform::here()], Sha256::of(content.as_bytes()));
    assert_eq!(row.checksums.len(), 2, "every platform of the release is recorded");
    assert!(!place.path("cache/github.com_o_provider-x/1.0.0/plan9_mips").exists(), "and one is installed");
}

#[test]
fn a_second_time_changes_nothing() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    place.install("dist").unwrap();
    let before = place.lock_file();
    let plan = place.install("dist").unwrap();
    assert!(!plan.changes().iter().any(Change::is_change), "{:?}", plan.changes());
    assert_eq!(place.lock_file(), before);
}

#[test]
fn a_plan_writes_nothing() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    let releases = Release::open_all(&place.path("dist"), &semver::VersionReq::STAR).unwrap();
    Installation::plan(&releases, &place.request()).unwrap();
    assert!(!place.path("project").exists() && !place.path("cache").exists());
}

#[test]
fn an_update_keeps_the_old_program() {
    let place = Place::new();
    place.release("old", "1.0.0", "one");
    place.release("new", "1.1.0", "two");
    place.install("old").unwrap();
    let plan = place.install("new").unwrap();
    let recorded = plan.changes().iter().find_map(|change| match change {
        Change::Record { from, to, .. } => Some((from.clone(), to.clone())),
        _ => None,
    });
    assert_eq!(recorded, Some((Some(Version::new(1, 0, 0)), Version::new(1, 1, 0))));
    assert!(place.program("1.0.0").exists() && place.program("1.1.0").exists());
    assert!(!place.lock_file().contains("1.0.0"));
}

#[test]
fn a_mirror_gives_the_newest_that_fits() {
    let place = Place::new();
    for version in ["1.0.0", "1.9.0", "1.10.0", "2.0.0"] {
        place.release(&format!("mirror/github.com/o/provider-x/v{version}"), version, version);
    }
    let newest = |wanted: &str| {
        let releases = Release::open_all(&place.path("mirror"), &wanted.parse().unwrap())?;
        Ok::<_, ReleaseError>(releases[0].manifest().version.to_string())
    };
    assert_eq!(newest("*").unwrap(), "2.0.0");
    assert_eq!(newest("^1").unwrap(), "1.10.0");
    let error = newest("^3").unwrap_err().to_string();
    assert!(error.ends_with("no version that fits ^3; it has 1.0.0, 1.9.0, 1.10.0, 2.0.0"), "{error}");
}

#[test]
fn a_changed_archive_is_refused_and_nothing_is_written() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    let archive = place.path(&format!("dist/provider-x_1.0.0_{}.tar.gz", Platform::here()));
    let entry = ArchiveEntry { name: "provider-x".into(), executable: true, content: b"evil".to_vec() };
    fs::write(&archive, pack(&[entry]).unwrap()).unwrap();
    let error = place.install("dist").unwrap_err().to_string();
    assert!(error.contains("is not what was released"), "{error}");
    assert!(!place.path("cache").exists() && !place.path("project").exists());
}

#[test]
fn a_changed_manifest_is_refused() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    let path = place.path("dist/manifest.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"tool\"", "\"fool\"");
    fs::write(&path, text).unwrap();
    let error = place.install("dist").unwrap_err().to_string();
    assert!(error.contains("manifest.json is not what was released"), "{error}");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let place = Place::new();
    for (from, to) in [
        ("\"provider-x\"", "\"../../evil\""),
        ("github.com/o/provider-x", "github.com/../provider-x"),
        ("\"name\": \"x\"", "\"name\": \"\""),
        ("\"format_version\": 1", "\"format_version\": 2"),
    ] {
        place.release("dist", "1.0.0", "one");
        fs::remove_file(place.path("dist/SHA256SUMS")).unwrap();
        let path = place.path("dist/manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let error = place.install("dist").unwrap_err();
        assert!(matches!(error, InstallError::Release(ReleaseError::Malformed { .. })), "{to}: {error}");
    }
}

#[test]
fn one_version_has_one_program() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    place.release("other", "1.0.0", "two");
    place.install("dist").unwrap();
    let before = place.lock_file();
    let error = place.install("other").unwrap_err();
    assert!(matches!(error, InstallError::OtherProgram { .. }), "{error}");
    assert_eq!(place.lock_file(), before);

    let request = Request { replace: true, ..place.request() };
    place.install_with("other", &request).unwrap();
    assert!(fs::read_to_string(place.program("1.0.0")).unwrap().starts_with("two"));
    assert_ne!(place.lock_file(), before);
}

#[test]
fn a_newer_lock_file_is_left_alone() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    fs::create_dir_all(place.path("project/.agent")).unwrap();
    let text = "lock_file_version = 2\nwhatever \"comes\" {}\n";
    fs::write(place.path("project/.agent/agent.lock.hcl"), text).unwrap();
    let error = place.install("dist").unwrap_err().to_string();
    assert!(error.contains("lock_file_version is 2"), "{error}");
    assert_eq!(place.lock_file(), text);
    assert!(!place.path("cache").exists());
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    fs::create_dir_all(place.path("project/.agent")).unwrap();
    let text = "lock_file_version = 1\nprovider \"x\" {\n  source = \"github.com/else/x\"\n  version = \"1.0.0\"\n}\n";
    fs::write(place.path("project/.agent/agent.lock.hcl"), text).unwrap();
    let error = place.install("dist").unwrap_err().to_string();
    assert!(error.contains("has a provider x from github.com/else/x"), "{error}");
    assert_eq!(place.lock_file(), text);
}

#[test]
fn what_is_asked_for_must_be_there() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    let unknown = Request { providers: vec!["y".into()], ..place.request() };
    let error = place.install_with("dist", &unknown).unwrap_err().to_string();
    assert_eq!(error, "the release has no provider y; it has x");
    let foreign = Request { platforms: vec!["darwin_arm64".parse().unwrap()], ..place.request() };
    let error = place.install_with("dist", &foreign).unwrap_err().to_string();
    assert!(error.starts_with("the release has no x for darwin_arm64; it was built for "), "{error}");
    let error = place.install("nowhere").unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn a_lock_file_that_is_a_link_stays_one() {
    let place = Place::new();
    place.release("dist", "1.0.0", "one");
    fs::create_dir_all(place.path("project/.agent")).unwrap();
    fs::create_dir_all(place.path("shared")).unwrap();
    fs::write(place.path("shared/lock.hcl"), "lock_file_version = 1\n").unwrap();
    std::os::unix::fs::symlink("../../shared/lock.hcl", place.path("project/.agent/agent.lock.hcl")).unwrap();
    place.install("dist").unwrap();
    assert!(fs::symlink_metadata(place.path("project/.agent/agent.lock.hcl")).unwrap().is_symlink());
    assert!(fs::read_to_string(place.path("shared/lock.hcl")).unwrap().contains("provider \"x\""));
}
