//! A folder with a manifest and a main.js as a provider.
