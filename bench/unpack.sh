#!/bin/sh
# unpack.sh - packages of Debian's backports, unpacked into a folder of their
# own.  Nothing is installed, and the machine's apt is not changed.
#
# usage: bench/unpack.sh DIR go|mimalloc
#
# The script unpacks the newest Go, or the newest mimalloc, below DIR.  It
# prints the root of Go's tree, or the folder that has usr/include and usr/lib.
# If that is there already, it is used as it is.  On failure the script exits
# with 1, and the last line on standard error says why.
#
# Packages come from the archive from which the machine's own apt takes Debian's
# main.  The script adds the suites for backports of this release and of the
# current stable one.  apt checks signatures and sums, with the machine's keys
# and with a state folder below DIR.
set -eu
LC_ALL=C
export LC_ALL

refuse() {
	echo "$1" >&2
	exit 1
}

[ $# -eq 2 ] || refuse "usage: unpack.sh DIR go|mimalloc"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
what=$2
apt_dir=$dir/apt
root=$dir/$what

# our_apt COMMAND ARGUMENT... runs apt with nothing of the machine's but its
# keys.
our_apt() {
	"$@" -o Dir::State="$apt_dir/state" -o Dir::Cache="$apt_dir/cache" \
		-o Dir::Etc::sourcelist="$apt_dir/sources.list" \
		-o Dir::Etc::sourceparts=- \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
}

# archive prints "address signed-by" of Debian's main in apt's configuration.
archive() {
	# shellcheck disable=SC2016 # apt's own names
	apt-get indextargets --format \
		'$(COMPONENT) $(RELEASE) $(REPO_URI) $(SIGNED_BY)' \
		'Created-By: Packages' | awk -v release="$1" '
		$1 == "main" && ($2 == release || $2 ~ /^(old)?stable$/) {
			print $3, ($4 ~ /^\// ? $4 : "")
			exit
		}'
}

write_sources() {
	[ -r /etc/os-release ] || refuse "not a Debian system"
	# shellcheck source=/dev/null
	. /etc/os-release
	[ "${ID-}" = debian ] || refuse "not a Debian system"
	found=$(archive "${VERSION_CODENAME-}")
	[ -n "$found" ] || refuse "apt knows no archive of Debian's main"
	key=${found#* }
	for suite in "$VERSION_CODENAME-backports" stable-backports; do
		echo "deb ${key:+[signed-by=$key] }${found%% *} $suite main"
	done >"$apt_dir/sources.list"
}

# newest PATTERN prints the name of the newest package whose name matches.
newest() {
	our_apt apt-cache search --names-only "$1" | cut -d ' ' -f 1 |
		sort -V | tail -n 1
}

packages() {
	if [ "$what" = go ]; then
		name=$(newest '^golang-1\.[0-9]+-go$')
		[ -z "$name" ] || echo "$name ${name%-go}-src"
	else
		name=$(newest '^libmimalloc[0-9.]+$')
		[ -z "$name" ] || echo "$name libmimalloc-dev"
	fi
}

# fetch PACKAGE... fills $root, which appears only when it is complete.
fetch() {
	rm -rf "$dir/deb" "$dir/new"
	mkdir -p "$dir/deb" "$dir/new"
	(cd "$dir/deb" && our_apt apt-get -qq download "$@") \
		>"$apt_dir/log" 2>&1 ||
		refuse "apt did not fetch $*: $(tail -n 1 "$apt_dir/log")"
	for package in "$dir"/deb/*.deb; do
		dpkg-deb -x "$package" "$dir/new" ||
			refuse "dpkg-deb did not unpack ${package##*/}"
	done
	rm -rf "$dir/deb"
	mv "$dir/new" "$root"
}

if [ ! -d "$root" ]; then
	for tool in apt-get apt-cache dpkg-deb; do
		command -v $tool >/dev/null 2>&1 || refuse "there is no $tool"
	done
	mkdir -p "$apt_dir/state/lists/partial" "$apt_dir/cache/archives/partial"
	write_sources
	# A missing suite is reported in the log, and does no harm.
	our_apt apt-get -q update >"$apt_dir/log" 2>&1 || true
	list=$(packages)
	[ -n "$list" ] || refuse "no $what in $(sed 's/.* \([^ ]*\) main$/\1/' \
		"$apt_dir/sources.list" | paste -s -d ' ' -)"
	# shellcheck disable=SC2086 # a list of names
	fetch $list
fi
if [ "$what" = go ]; then
	for tree in "$root"/usr/lib/go-*; do
		"$tree/bin/go" version >/dev/null 2>&1 ||
			refuse "the unpacked Go does not run"
		echo "$tree"
	done
else
	echo "$root"
fi
