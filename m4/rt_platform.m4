# RT_PLATFORM
# -----------
# Stops configure where the library cannot work: it packs pointers into
# 64-bit words, reads bitmaps by byte, talks to Linux, and saves registers in
# the assembly of two processors (runtime/world/context.c).
AC_DEFUN([RT_PLATFORM], [
AC_REQUIRE([AC_CANONICAL_HOST])
AC_REQUIRE([AC_PROG_CC])
AC_MSG_CHECKING([for 64-bit little-endian Linux on x86-64 or aarch64])
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if !defined(__linux__) || __SIZEOF_POINTER__ != 8 || \
    __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || \
    !(defined(__x86_64__) || defined(__aarch64__))
#error "not supported"
#endif
int rt_platform;
]])],
	[AC_MSG_RESULT([yes])],
	[AC_MSG_RESULT([no])
	 AC_MSG_ERROR([rtheap runs on 64-bit little-endian Linux on x86-64 and aarch64 only; $CC builds for something else (host: $host)])])
])
