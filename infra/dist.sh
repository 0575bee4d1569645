#!/usr/bin/env bash
# Makes an archive of the programs for each processor, a bill of materials beside it, the Python package and SHA256SUMS, into dist/. The same commit makes the same bytes.
# The cloud's own programs are for 64-bit processors.
# usage: infra/dist.sh VERSION LDFLAGS PROGRAM...
set -euo pipefail
version=$1 ldflags=$2
shift 2
at=$(git log -1 --format=%ct)
rm -rf dist
mkdir dist
for processor in amd64 arm64 armv7; do
	name=kennel_${version}_linux_$processor
	mkdir "dist/$name"
	echo "building $name"
	programs=("$@")
	if [ "$processor" = armv7 ]; then
		programs=($(printf '%s\n' "$@" | grep -vxE 'kenneld|s3d'))
	fi
	GOOS=linux GOARCH=${processor%v7} GOARM=7 go build -ldflags "$ldflags" -o "dist/$name/" "${programs[@]/#/./cmd/}"
	go run ./cmd/sbom -version "$version" "dist/$name"/* >"dist/$name.cdx.json"
	cp -r LICENSE CHANGELOG.md "dist/$name/"
	mkdir "dist/$name/systemd"
	cp infra/systemd/*.{service,timer,sysusers,tmpfiles} "dist/$name/systemd/"
	tar -C dist --sort=name --mtime="@$at" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" | gzip -n >"dist/$name.tar.gz"
	rm -r "dist/$name"
done
# The Python package, of whose versions a number that grows with each commit is the last part.
cp -r sdk/python dist/python
sed -i "s/^version = .*/version = \"0.1.$(git rev-list --count HEAD)\"/" dist/python/pyproject.toml
chmod -R u=rwX,go=rX dist/python
SOURCE_DATE_EPOCH=$at /usr/bin/python3 -m pip wheel -q --no-deps --no-index --no-build-isolation --wheel-dir dist dist/python
rm -r dist/python
cd dist
sha256sum kennel_* >SHA256SUMS
