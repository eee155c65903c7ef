#!/bin/sh
# install.sh - a program builds and runs against the installed library, as
# its users build it: pkg-config, shared and static.
#
# usage: srcdir=DIR libdir=DIR CC=... PKG_CONFIG=... test/install.sh
set -eu
: "${srcdir:?}" "${libdir:?}" "${CC:?}" "${PKG_CONFIG:?}"
program=$(mktemp)
trap 'rm -f "$program"' EXIT

cflags=$("$PKG_CONFIG" --cflags rtheap)
libs=$("$PKG_CONFIG" --libs rtheap)
private=$("$PKG_CONFIG" --static --libs rtheap | sed 's/-lrtheap//')
version=$("$PKG_CONFIG" --modversion rtheap)

# build_and_run LIBRARY...
build_and_run() {
	# shellcheck disable=SC2086 # lists of options
	$CC $cflags "$srcdir/test/installed.c" -o "$program" "$@"
	[ "$(LD_LIBRARY_PATH=$libdir "$program")" = "$version" ]
}

tried=0
if [ -e "$libdir/librtheap.so" ]; then
	# shellcheck disable=SC2086
	build_and_run $libs
	tried=$((tried + 1))
fi
if [ -e "$libdir/librtheap.a" ]; then
	# shellcheck disable=SC2086
	build_and_run "$libdir/librtheap.a" $private
	tried=$((tried + 1))
fi
echo "install: $tried passed, 0 failed"
[ $tried -gt 0 ]
