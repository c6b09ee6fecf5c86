//! What lies beside a program in its archive: our licences, those of everything it links, and the list of its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use release::archive::Entry;
use serde::Deserialize;
use serde_json::{Value, json};

/// A package that is linked into a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    licence: String,
    /// SHA-256 of the package as its registry has it; none for our own.
    checksum: Option<String>,
    /// Texts of its licences.
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: String,
}

/// The papers of a package's program on a target.
///
/// # Errors
/// Cargo cannot tell what is linked.
pub(super) fn of(root: &Path, package: &str, target: &str) -> anyhow::Result<Vec<Entry>> {
    let parts = parts(root, package, target)?;
    let entry = |name: &str, content: Vec<u8>| Entry { name: name.to_owned(), executable: false, content };
    let ours = |name: &str| std::fs::read(root.join(name)).with_context(|| name.to_owned());
    Ok(vec![
        entry("LICENSE-APACHE", ours("LICENSE-APACHE")?),
        entry("LICENSE-MIT", ours("LICENSE-MIT")?),
        entry("THIRD-PARTY.txt", third_party(&parts).into_bytes()),
        entry("sbom.cdx.json", (bill_of_materials(package, &parts).to_string() + "\n").into_bytes()),
    ])
}

/// What the program links: what is only needed to build it is not in it.
fn linked(root: &Path, package: &str, target: &str) -> anyhow::Result<BTreeSet<(String, String)>> {
    let tree = cargo(
        root,
        &[
            "tree",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--target",
            target,
            "--package",
            package,
        ],
    )?;
    let pair = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    Ok(tree.lines().filter_map(pair).collect())
}

fn parts(root: &Path, package: &str, target: &str) -> anyhow::Result<BTreeSet<Part>> {
    let linked = linked(root, package, target)?;
    let metadata =
        cargo(root, &["metadata", "--locked", "--format-version", "1", "--filter-platform", target])?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let lock_file = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    let checksums = checksums(&lock_file);
    let packages = metadata.packages.into_iter().filter(|package| package.source.is_some());
    packages
        .filter(|package| linked.contains(&(package.name.clone(), package.version.clone())))
        .map(|package| {
            let licence = package.license.with_context(|| format!("{} names no licence", package.name))?;
            let checksum = checksums.get(&(package.name.as_str(), package.version.as_str()));
            Ok(Part {
                licence: licence.replace('/', " OR "),
                checksum: checksum.map(|text| (*text).to_owned()),
                texts: licence_texts(Path::new(&package.manifest_path))?,
                name: package.name,
                version: package.version,
            })
        })
        .collect()
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().context("cargo")?;
    if !output.status.success() {
        bail!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The checksums of a `Cargo.lock`, by name and version.
fn checksums(lock_file: &str) -> BTreeMap<(&str, &str), &str> {
    let entry = |block| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?));
    lock_file.split("[[package]]").filter_map(entry).collect()
}

fn field<'a>(block: &'a str, key: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// The texts beside a package's manifest that are named like a licence, in the order of their names.
fn licence_texts(manifest: &Path) -> anyhow::Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest is in a folder")?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let named = ["LICEN", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"]
            .iter()
            .any(|word| name.starts_with(word));
        if named && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    files
        .iter()
        .map(|path| Ok(String::from_utf8_lossy(&std::fs::read(path)?).replace("\r\n", "\n")))
        .collect()
}

/// Every part with its licence, and every text once.
fn third_party(parts: &BTreeSet<Part>) -> String {
    let mut out = "What this program links, and the licences it comes under.\n\n".to_owned();
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for part in parts {
        out += &format!("{} {}: {}\n", part.name, part.version, part.licence);
        for text in &part.texts {
            texts.entry(text.trim()).or_default().push(format!("{} {}", part.name, part.version));
        }
    }
    for (text, names) in texts {
        out += &format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    out
}

/// A CycloneDX list of parts. It has no serial number and no time: they would differ from build to build.
fn bill_of_materials(package: &str, parts: &BTreeSet<Part>) -> Value {
    let locator = |name: &str, version: &str| format!("pkg:cargo/{name}@{version}");
    let version = env!("CARGO_PKG_VERSION");
    let components = parts.iter().map(|part| {
        let mut component = json!({
            "type": "library",
            "bom-ref": locator(&part.name, &part.version),
            "name": part.name,
            "version": part.version,
            "purl": locator(&part.name, &part.version),
            "licenses": [{"expression": part.licence}],
        });
        if let Some(checksum) = &part.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": locator(package, version),
            "name": package,
            "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }},
        "components": components.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates that only some providers have a use for. A provider that links one without need is larger, slower to
    /// start, and open to what is found in it.
    const RESERVED: &[(&str, &[&str])] = &[
        ("clap", &[]),
        ("inquire", &[]),
        ("rusqlite", &["task"]),
        ("reqwest", &["web"]),
        ("rustls", &["web"]),
        ("rquickjs", &["code"]),
        ("grep-searcher", &["search"]),
        ("nucleo-matcher", &["search"]),
        ("lopdf", &["filesystem", "web"]),
        ("vt100", &["exec"]),
    ];

    #[test]
    fn providers_link_only_what_they_use() {
        let root = crate::workspace_root();
        let target = super::super::build::host().unwrap();
        for (name, _) in crate::docs::providers().unwrap() {
            let linked = linked(&root, &format!("provider-{name}"), &target).unwrap();
            assert!(linked.iter().any(|(part, _)| part == "provider-core"), "{name}: {linked:?}");
            for (reserved, users) in RESERVED {
                let links = linked.iter().any(|(part, _)| part == reserved);
                assert!(!links || users.contains(&name), "provider-{name} links {reserved}");
            }
        }
    }

    #[test]
    fn a_program_comes_with_its_papers() {
        let root = crate::workspace_root();
        let target = super::super::build::host().unwrap();
        let papers = of(&root, "provider-user", &target).unwrap();
        let text = |name: &str| {
            let entry = papers.iter().find(|entry| entry.name == name).unwrap();
            String::from_utf8(entry.content.clone()).unwrap()
        };
        let parts: Value = serde_json::from_str(&text("sbom.cdx.json")).unwrap();
        let parts = parts["components"].as_array().unwrap();
        let tonic = parts.iter().find(|part| part["name"] == "tonic").unwrap();
        assert_eq!(tonic["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(tonic["licenses"][0]["expression"], "MIT");
        assert!(parts.iter().all(|part| part["name"] != "provider-core" && part["name"] != "protox"));
        let licences = text("THIRD-PARTY.txt");
        assert!(licences.contains("\ntokio ") && licences.contains("Permission is hereby granted"));
        assert!(text("LICENSE-MIT").contains("Permission"));
    }

    #[test]
    fn checksums_are_found_by_name_and_version() {
        let text = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"r\"\nchecksum = \"ff\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        assert_eq!(checksums(text), BTreeMap::from([(("a", "1.0.0"), "ff")]));
    }
}
