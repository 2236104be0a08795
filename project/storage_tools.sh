#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds or fetches the servers of the storage tests into the directory given; what is there already is left as it is.
# Go checks what it fetches against its checksum database.
set -eu
tools=$1
mkdir -p "$tools"

# npm checks what it fetches against its checksums.
azurite=3.35.0
if ! command -v npm >/dev/null; then
  echo "make storage-tools: Azurite needs npm, and there is none on the PATH; its tests are skipped" >&2
elif [ "$(cat "$tools/.azurite.built" 2>/dev/null)" != "$azurite" ]; then
  echo "Fetching Azurite $azurite"
  npm install --silent --no-fund --no-audit --prefix "$tools/azurite" "azurite@$azurite"
  ln -sf azurite/node_modules/.bin/azurite-blob "$tools/azurite-blob"
  echo "$azurite" >"$tools/.azurite.built"
fi

if ! command -v go >/dev/null; then
  echo "make storage-tools: versitygw, MinIO, fake-gcs-server and Toxiproxy need Go 1.26 or newer, and there is no go on the PATH;" \
    "tests that need them are skipped" >&2
  exit 0
fi

# build <program> <package>@<version> [<name of the package's own program>]
build() {
  stamp="$tools/.$1.built"
  [ -x "$tools/$1" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$2" ] && return
  echo "Building $1 ($2)"
  GOBIN="$tools/building" go install "$2"
  mv "$tools/building/${3:-$1}" "$tools/$1"
  echo "$2" >"$stamp"
}

build versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0
build toxiproxy-server github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 server
build fake-gcs-server github.com/fsouza/fake-gcs-server@v1.56.1
# Only where asked for: `MINIO=1 make storage-tools`. It has no version that Go knows, so this is a commit.
[ -z "${MINIO-}" ] || build minio github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
