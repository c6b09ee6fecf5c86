//! New providers of this workspace.

use scaffold::ProviderName;
use xtask::{new_provider, workspace_root};

#[test]
fn every_provider_is_in_every_list() {
    new_provider::check_lists(&workspace_root()).unwrap();
}

#[test]
fn a_new_provider_is_the_template_under_its_name() {
    for name in ["s3", "issue-tracker", "a-provider-with-a-long-name-9"] {
        new_provider::check_made(&workspace_root(), &ProviderName::parse(name).unwrap()).unwrap();
    }
}
