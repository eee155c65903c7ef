# RT_SANITIZER
# ------------
# --enable-sanitizer=LIST builds everything with -fsanitize=LIST.  Comes
# before LT_INIT, because such a build has no shared library: the run-time
# of a sanitizer belongs to the program.
# Sets RT_SANITIZER_CFLAGS and RT_SANITIZER_CPPFLAGS, and SANITIZER for
# automake.
AC_DEFUN([RT_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
	[AS_HELP_STRING([--enable-sanitizer=LIST],
		[build with -fsanitize=LIST and without a shared library])],
	[], [enable_sanitizer=no])
AS_CASE([$enable_sanitizer],
	[yes], [AC_MSG_ERROR([--enable-sanitizer wants a list: thread, or address,undefined])],
	[no], [],
	[enable_shared=no
	 RT_SANITIZER_CFLAGS="-fsanitize=$enable_sanitizer -fno-sanitize-recover=all -fno-omit-frame-pointer"
	 AS_CASE([,$enable_sanitizer,], [*,thread,*], [_RT_SANITIZER_THREAD])
	 RT_TRY_CFLAGS([$RT_SANITIZER_CFLAGS], [],
		[AC_MSG_ERROR([$CC cannot build with $RT_SANITIZER_CFLAGS])])])
AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
AC_SUBST([RT_SANITIZER_CFLAGS])
AC_SUBST([RT_SANITIZER_CPPFLAGS])
])

# libatomic_ops keeps to what the thread sanitizer can follow when told so.
# gcc warns of every fence it cannot follow; the rule that no fence is relied
# on alone is ours to keep.
AC_DEFUN([_RT_SANITIZER_THREAD], [
RT_SANITIZER_CPPFLAGS=-DAO_THREAD_SANITIZER
RT_TRY_CFLAGS([-Wno-tsan],
	[RT_SANITIZER_CFLAGS="$RT_SANITIZER_CFLAGS -Wno-tsan"])
])

# RT_TRY_CFLAGS(FLAGS, IF-ACCEPTED, IF-REFUSED, [PROLOGUE])
# ---------------------------------------------------------
# Compiles and links an empty program, after PROLOGUE, with FLAGS; a warning is
# a refusal.
AC_DEFUN([RT_TRY_CFLAGS], [
AC_MSG_CHECKING([whether $CC takes $1])
rt_saved_cflags=$CFLAGS
CFLAGS="$CFLAGS $1 -Werror"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$4], [])], [rt_taken=yes], [rt_taken=no])
CFLAGS=$rt_saved_cflags
AC_MSG_RESULT([$rt_taken])
AS_IF([test $rt_taken = yes], [$2], [$3])
])
