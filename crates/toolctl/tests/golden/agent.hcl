required_providers {
  filesystem = { source = "github.com/pluggable-harness/provider-filesystem", version = "~> 0.1.0" }
  user       = { source = "github.com/pluggable-harness/provider-user", version = "~> 0.1.0" }
}

provider "filesystem" {
  allowed_roots = ["."]
}

provider "user" {}
