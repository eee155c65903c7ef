#!/bin/sh
# plugin.sh - a plugin that holds the static library, linked as rtheap.pc says
# (plugin_libs), exports none of its names.  It has a heap of its own beside the
# program's, and may be unloaded while a thread is attached.
#
# usage: srcdir=DIR [top_builddir=DIR] CC=... NM=... test/scripts/plugin.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=${top_builddir:-.}
archive=$builddir/librtheap.a
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

[ -e "$archive" ] || {
	skip 4 "plugins" "there is no static library"
	exit 77
}
# If the shared library is not built, the objects of the static one are not
# position-independent.
[ -e "$builddir/.libs/librtheap.so" ] || {
	skip 4 "plugins" "the code of the static library depends on its place"
	exit 77
}
options=$(sed -n 's/^plugin_libs=//p' "$builddir/rtheap.pc")
[ -n "$options" ]
verdict $? "rtheap.pc has plugin_libs"

# build OUTPUT OPTION...
build() {
	output=$1
	shift
	# shellcheck disable=SC2086 # lists of options
	${CC:-cc} ${RT_SANITIZER_CFLAGS-} -Wall -Wextra -Werror -pthread \
		-I"$srcdir/include" "$srcdir/test/scripts/plugin.c" -o "$dir/$output" \
		"$@" "$archive" -ldl
}

# shellcheck disable=SC2086 # a list of options
build plugin.so -DPLUGIN -shared -fPIC $options && build program
verdict $? "plugin and program are built"
! ${NM:-nm} -D --defined-only "$dir/plugin.so" | grep -q ' rt_'
verdict $? "the plugin exports nothing of the library"
"$dir/program" "$dir/plugin.so"
verdict $? "two heaps work, and the plugin is unloaded (status $?)"

verdict_sum
