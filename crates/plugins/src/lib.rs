//! Plugin folders: manifests, permissions, rules and settings.
