//! A provider as a crate of its own, outside the workspace.

use std::path::{Path, PathBuf};

use crate::name::ProviderName;
use crate::plan::{Plan, PlanError};
use crate::template::{calls, renamed, shared};

/// Where the crates of the SDK come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// The public repository.
    Repository,
    /// A checkout of it.
    Checkout(PathBuf),
}

/// The repository, as every manifest of this workspace names it.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

impl Sdk {
    /// The SDK in a folder: the checkout, or its `crates/provider-core`.
    ///
    /// # Errors
    /// There is no SDK.
    pub fn checkout(folder: &Path) -> Result<Self, PlanError> {
        let missing = || PlanError::NoSdk { path: folder.to_owned() };
        let folder = folder.canonicalize().map_err(|_| missing())?;
        let has_core = |root: &&Path| root.join("crates/provider-core/Cargo.toml").is_file();
        // From the checkout's own folders the checkout is meant.
        let root = folder.ancestors().take(3).find(has_core).ok_or_else(missing)?;
        Ok(Self::Checkout(root.to_owned()))
    }

    /// How a manifest depends on `provider-core`.
    fn dependency(&self) -> String {
        match self {
            Self::Repository => format!("git = {}", quoted(REPOSITORY)),
            Self::Checkout(root) => {
                format!("path = {}", quoted(&root.join("crates/provider-core").to_string_lossy()))
            }
        }
    }
}

/// A basic string of TOML. JSON's are a subset of them.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A complete crate in `folder`, which must not exist or be empty.
///
/// # Errors
/// Something is in the folder.
pub fn plan(name: &ProviderName, folder: &Path, sdk: &Sdk) -> Result<Plan, PlanError> {
    if occupied(folder)? {
        return Err(PlanError::Exists { path: folder.to_owned() });
    }
    let manifest = include_str!("../standalone/Cargo.toml.in");
    let mut creates = vec![
        (PathBuf::from("Cargo.toml"), renamed(manifest, name).replace("SDK", &sdk.dependency())),
        (PathBuf::from("README.md"), renamed(include_str!("../standalone/README.md.in"), name)),
        (PathBuf::from(".gitignore"), include_str!("../standalone/gitignore.in").to_owned()),
    ];
    let (path, text) = calls(name);
    creates.push((PathBuf::from(path), text));
    creates.extend(shared(name).map(|(path, text)| (PathBuf::from(path), text)));
    Ok(Plan { root: folder.to_owned(), creates, edits: Vec::new() })
}

/// Whether something stands at the place already.
fn occupied(folder: &Path) -> Result<bool, PlanError> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(true),
        Err(error) => Err(PlanError::io(folder)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ProviderName {
        ProviderName::parse("issue-tracker").unwrap()
    }

    fn checkout() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
    }

    fn manifest(sdk: &Sdk) -> String {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&name(), &folder.path().join("new"), sdk).unwrap();
        plan.creates.into_iter().find(|(path, _)| path == Path::new("Cargo.toml")).unwrap().1
    }

    #[test]
    fn the_repository_is_the_default_source() {
        let manifest = manifest(&Sdk::Repository);
        assert!(manifest.contains("name = \"provider-issue-tracker\""), "{manifest}");
        assert_eq!(manifest.matches(&format!("provider-core = {{ git = \"{REPOSITORY}\"")).count(), 2);
        assert!(!manifest.contains("SDK"), "{manifest}");
    }

    #[test]
    fn a_checkout_is_found_from_its_root_and_from_the_crate() {
        let root = Sdk::Checkout(checkout());
        assert_eq!(Sdk::checkout(&checkout()).unwrap(), root);
        assert_eq!(Sdk::checkout(&checkout().join("crates/provider-core")).unwrap(), root);
        assert!(manifest(&root).contains("/crates/provider-core\""));
        let nowhere = tempfile::tempdir().unwrap();
        let error = Sdk::checkout(nowhere.path()).unwrap_err().to_string();
        assert!(error.contains("no checkout of the SDK"), "{error}");
    }

    #[test]
    fn a_path_with_quotes_is_written_so_that_it_is_read_back() {
        let dependency = Sdk::Checkout(PathBuf::from("/a \"b\"\\c")).dependency();
        assert_eq!(dependency, r#"path = "/a \"b\"\\c/crates/provider-core""#);
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&name(), folder.path(), &Sdk::Repository).unwrap();
        plan.apply().unwrap();
        assert!(folder.path().join("src/tools/greet.rs").is_file());
        let again = super::plan(&name(), folder.path(), &Sdk::Repository).unwrap_err();
        assert!(matches!(again, PlanError::Exists { .. }), "{again}");
        let late = plan.apply().unwrap_err();
        assert!(matches!(late, PlanError::Exists { .. }), "{late}");
        let file = folder.path().join("README.md");
        let at_a_file = super::plan(&name(), &file, &Sdk::Repository).unwrap_err();
        assert!(matches!(at_a_file, PlanError::Exists { .. }), "{at_a_file}");
    }
}
