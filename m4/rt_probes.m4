# RT_PROBES
# ---------
# Compiles static probes (runtime/os/probe.h) where sys/sdt.h is found, unless
# --disable-probes was given.  With --enable-probes it must be found.
# Sets RT_PROBES_CPPFLAGS.
AC_DEFUN([RT_PROBES], [
AC_REQUIRE([AC_PROG_CC])
AC_ARG_ENABLE([probes],
	[AS_HELP_STRING([--disable-probes],
		[leave out static probes (default: where sys/sdt.h is found)])],
	[], [enable_probes=auto])
RT_PROBES_CPPFLAGS=
AS_IF([test "x$enable_probes" != xno],
	[AC_CHECK_HEADER([sys/sdt.h], [RT_PROBES_CPPFLAGS=-DRT_PROBES=1],
		[AS_IF([test "x$enable_probes" != xauto],
			[AC_MSG_ERROR([sys/sdt.h is missing (Debian: systemtap-sdt-dev)])])])])
AC_MSG_CHECKING([for static probes])
AS_IF([test -n "$RT_PROBES_CPPFLAGS"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
AC_SUBST([RT_PROBES_CPPFLAGS])
])
