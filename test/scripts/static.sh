#!/bin/sh
# static.sh - the static data of a program and of libraries that it loads and
# unloads are roots: test/scripts/static.c with these libraries, at fixed
# addresses, and as a static executable.
#
# usage: srcdir=DIR [top_builddir=DIR] CC=... test/scripts/static.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=${top_builddir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
LD_LIBRARY_PATH=$builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# build OUTPUT OPTION...
build() {
	output=$1
	shift
	# shellcheck disable=SC2086 # lists of options
	${CC:-cc} ${RT_SANITIZER_CFLAGS-} -Wall -Wextra -Werror -pthread \
		-I"$srcdir/include" "$srcdir/test/scripts/static.c" \
		-o "$dir/$output" "$@" -ldl
}

# run WHAT: runs the program with three libraries, with one marker and with two,
# and once more while every mark is checked.
run() {
	for options in gc_threads=1 gc_threads=2 checkmark=1,gc_threads=2; do
		RTDEBUG=$options "$dir/program" "$dir/one.so" \
			"$dir/two.so" "$dir/large.so"
		verdict $? "$1 with $options"
	done
}

# check WHAT LIBRARY OPTION...
check() {
	what=$1
	[ -e "$2" ] || return 0
	shift
	build program "$@"
	verdict $? "$what is built"
	run "$what"
}

build one.so -DLIBRARY -shared -fPIC && cp "$dir/one.so" "$dir/two.so" &&
	build large.so -DLIBRARY -DLENGTH=500000 -shared -fPIC
verdict $? "the libraries are built"
check "a program with the static library" "$builddir/librtheap.a"
check "a program with the shared library" "$builddir/.libs/librtheap.so"
check "a program at a fixed address" "$builddir/librtheap.a" -no-pie
if [ -n "${RT_SANITIZER_CFLAGS-}" ] || [ ! -e "$builddir/librtheap.a" ] ||
	! build program "$builddir/librtheap.a" -static 2>/dev/null; then
	skip 1 "static executables" "none can be built"
else
	"$dir/program"
	verdict $? "a static executable"
fi

verdict_sum
