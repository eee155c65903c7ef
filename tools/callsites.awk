# callsites.awk - makes a macro for each function that calls the system, from
# the headers that declare them.  test/harness/callsite.h says what the macros are for.
#
# usage: awk -f tools/callsites.awk runtime/os/oscall.h runtime/os/nanotime.h
/^\/\// { next }
match($0, /(oscall|nanotime)[a-z_]*\(/) && !/return/ {
	name = substr($0, RSTART, RLENGTH - 1)
	printf "#define %s(...) CALLSITE(%s, __VA_ARGS__)\n", name, name
}
