lock_file_version = 1

provider "filesystem" {
  source      = "github.com/pluggable-harness/provider-filesystem"
  version     = "0.1.0"
  resolved_at = "2026-01-02T03:04:05Z"
  category    = "tool"
  checksums = {
    "linux_amd64" = "sha256:e31cb63a9d9f24455acd5f68259e0ecf81d37c01e86b66b70f6c11b584cb681a"
  }
}

provider "user" {
  source      = "github.com/pluggable-harness/provider-user"
  version     = "0.1.0"
  resolved_at = "2026-01-02T03:04:05Z"
  category    = "tool"
  checksums = {
    "linux_amd64" = "sha256:9dc59334ac22fee89efcb1d698fc246ad718e12d6dbde5fde84a019e7dd669e2"
  }
}
