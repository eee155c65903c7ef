# RT_HARDENING
# ------------
# Builds with what the compiler offers against abuse of a memory error, unless
# --disable-hardening was given: a canary in frames with arrays, checked copies
# into objects of known size, and marks at the targets of indirect branches.
# A sanitizer checks more than that, and does not go with all of it.
# Sets RT_HARDENING_CFLAGS.
AC_DEFUN([RT_HARDENING], [
AC_REQUIRE([RT_SANITIZER])
AC_ARG_ENABLE([hardening],
	[AS_HELP_STRING([--disable-hardening],
		[leave out stack protector, _FORTIFY_SOURCE, branch protection])],
	[], [enable_hardening=yes])
RT_HARDENING_CFLAGS=
AS_IF([test "x$enable_hardening" != xno && test "x$enable_sanitizer" = xno], [
	# Who builds may have chosen a level.
	AS_CASE(["$CC $CPPFLAGS $CFLAGS"], [*_FORTIFY_SOURCE*], [],
		[_RT_HARDEN([-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2])])
	_RT_HARDEN([-fstack-protector-strong])
	_RT_HARDEN([-fcf-protection=full])
	_RT_HARDEN([-mbranch-protection=standard])
])
AC_SUBST([RT_HARDENING_CFLAGS])
])

# _RT_HARDEN(FLAGS): adds FLAGS if the compiler knows them for this processor.
# Checked copies want an optimiser; without one the C library warns.
AC_DEFUN([_RT_HARDEN], [
RT_TRY_CFLAGS([$1], [RT_HARDENING_CFLAGS="$RT_HARDENING_CFLAGS $1"], [],
	[[#include <string.h>]])
])
