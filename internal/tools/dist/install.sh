#!/bin/sh
# Installs Leat @VERSION@. "sh install.sh --help" says how.
set -eu

version='@VERSION@'
from=''
dir="${HOME:-}/.local/bin"

fail() {
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

usage() {
	cat <<'END'
Downloads the archive of a release of Leat for this system, checks its checksum, and puts the program into a folder. It
changes nothing but DIR/leat, and asks for no password.

usage: sh install.sh [--dir DIR] [--version VERSION] [--from URL]

  --dir DIR          where the program goes; ~/.local/bin where it is not said
  --version VERSION  which release; @VERSION@ where it is not said
  --from URL         where its files are: a folder with the archives and SHA256SUMS
END
}

while [ $# -gt 0 ]; do
	case $1 in
	--dir | --version | --from)
		[ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value"
		case $1 in
		--dir) dir=$2 ;;
		--version) version=$2 ;;
		--from) from=$2 ;;
		esac
		shift 2
		;;
	-h | --help)
		usage
		exit 0
		;;
	*) fail "unknown argument $1; see --help" ;;
	esac
done
[ "$dir" != /.local/bin ] || fail "HOME is not set; say where the program goes with --dir"
[ -n "$from" ] || from="@DOWNLOADS@/$version"

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no Leat for $(uname -s) here; on Windows take the zip of the release" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no Leat for the processor $(uname -m)" ;;
esac

if command -v curl >/dev/null 2>&1; then
	fetch() { curl -fsSL --retry 3 -o "$2" "$1"; }
elif command -v wget >/dev/null 2>&1; then
	fetch() { wget -q -O "$2" "$1"; }
else
	fail "curl or wget is needed"
fi
if command -v sha256sum >/dev/null 2>&1; then
	sum() { sha256sum "$1"; }
elif command -v shasum >/dev/null 2>&1; then
	sum() { shasum -a 256 "$1"; }
else
	fail "sha256sum or shasum is needed to check what was downloaded"
fi

name="leat-$version-$os-$arch"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fetch "$from/SHA256SUMS" "$scratch/SHA256SUMS" || fail "there is no SHA256SUMS at $from"
want=$(awk -v f="$name.tar.gz" '$2 == f { print $1 }' "$scratch/SHA256SUMS")
[ -n "$want" ] || fail "the release has no $name.tar.gz"
fetch "$from/$name.tar.gz" "$scratch/$name.tar.gz" || fail "$name.tar.gz can't be downloaded from $from"
got=$(sum "$scratch/$name.tar.gz" | cut -d ' ' -f 1)
[ "$got" = "$want" ] || fail "$name.tar.gz is not what was released: its checksum is $got, it should be $want. Nothing was installed."

tar -xzf "$scratch/$name.tar.gz" -C "$scratch" "$name/leat"
chmod 755 "$scratch/$name/leat"
"$scratch/$name/leat" version >/dev/null || fail "the program does not run on this system"
mkdir -p "$dir"
# Moved within the folder, so that a program that runs from there is replaced whole.
cp "$scratch/$name/leat" "$dir/.leat.new"
mv -f "$dir/.leat.new" "$dir/leat"

printf 'Leat %s is installed: %s\n' "$version" "$dir/leat"
case ":${PATH:-}:" in
*":$dir:"*) ;;
*) printf 'That folder is not in your PATH; add it with: export PATH="%s:$PATH"\n' "$dir" ;;
esac
