#!/bin/sh
# install.sh - programs build and run against the installed library, as its
# users build them: with pkg-config, shared and static.
#
# usage: srcdir=DIR libdir=DIR CC=... PKG_CONFIG=... test/scripts/install.sh
set -u
: "${srcdir:?}" "${libdir:?}" "${CC:?}" "${PKG_CONFIG:?}"
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
# shellcheck source=test/scripts/example.sh
. "$srcdir/test/scripts/example.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

cflags=$("$PKG_CONFIG" --cflags rtheap) &&
	libs=$("$PKG_CONFIG" --libs rtheap) &&
	private=$("$PKG_CONFIG" --static --libs rtheap) &&
	version=$("$PKG_CONFIG" --modversion rtheap) || exit 99

# build PROGRAM SOURCE LIBRARY...
build() {
	program=$1
	source=$2
	shift 2
	# shellcheck disable=SC2086 # lists of options
	$CC $cflags "$source" -o "$program" "$@"
}

# check KIND LIBRARY...: a program that is built with this library runs.
check() {
	kind=$1
	shift
	build "$dir/installed" "$srcdir/test/scripts/installed.c" "$@"
	verdict $? "installed.c compiles with the $kind library"
	[ "$("$dir/installed")" = "$version" ]
	verdict $? "header, $kind library and rtheap.pc are of one version"
	for name in $example_names; do
		check_example "$@"
	done
}

# check_example LIBRARY...: the example $name.
check_example() {
	[ "$name" = hello ] || set -- -pthread "$@"
	[ "$name" != threads ] || set -- "$srcdir/examples/report.c" "$@"
	build "$dir/$name" "$srcdir/examples/$name.c" "$@"
	verdict $? "$name compiles with the $kind library"
	example_run "$name" "$dir/$name"
	verdict $? "$name prints $name.expected with the $kind library"
}

if [ -e "$libdir/librtheap.so" ]; then
	# shellcheck disable=SC2086 # a list of options
	check shared $libs
fi
if [ -e "$libdir/librtheap.a" ]; then
	# shellcheck disable=SC2086 # lists of options
	check static "$libdir/librtheap.a" ${private%-lrtheap*} ${private#*-lrtheap}
fi
[ $((passed + failed)) -gt 0 ]
verdict $? "a library is installed"
verdict_sum
