// main.c - scheme [--report] [--gc-percent N] FILE...
//
// Programs run one after the other in one heap; without a file, a prompt.
// The interpreter has its own thread, because recursion in Scheme is
// recursion in C and wants more stack than the main thread is sure to have.
#include "scheme.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STACK_SIZE = 64 << 20,	// address space; pages come as they are used
	STACK_RESERVE = 8 << 20 // for the collector and one deep nest of forms
};

struct options {
	bool report;
	int gc_percent;
	bool has_percent;
	int nfiles;
	char **files;
};

static void make_vm(void)
{
	vm.self = rt_thread_self();
	vm.stack_limit =
	    (uintptr_t)__builtin_frame_address(0) - STACK_SIZE + STACK_RESERVE;
	vm.frame = vm.room;
	reader_init(&standard_input, STDIN_FILENO, "stdin");
	vm.form = standard_input.at;
	vm.where = &vm.form;
	vm.sym_else = symbol_named("else");
	vm.sym_arrow = symbol_named("=>");
	vm.sym_quote = symbol_named("quote");
	vm.sym_quasiquote = symbol_named("quasiquote");
	vm.sym_unquote = symbol_named("unquote");
	vm.sym_splice = symbol_named("unquote-splicing");
	define_control();
	define_numbers();
	define_lists();
	define_text();
	define_core_syntax();
	define_derived_syntax();
}

// read_and_run runs forms to the end and returns 0, or why it was left.
static int read_and_run(struct reader *r, bool prompt, bool show)
{
	int why = setjmp(vm.top);

	if (why)
		return why;
	for (;;) {
		if (prompt)
			fputs("> ", stdout);
		value form = reader_datum(r);
		if (form == END_OF_FILE)
			return 0;
		value v = eval_top(form);
		if (show && v != UNSPECIFIED) {
			print(stdout, v, true);
			putchar('\n');
		}
	}
}

static int repl(void)
{
	bool prompt = isatty(STDIN_FILENO);
	int why;

	do
		why = read_and_run(&standard_input, prompt, true);
	while (why == TOP_ERROR);
	if (prompt && why == 0)
		putchar('\n');
	return vm.status;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// run_file returns 0, or why the file was left.
static int run_file(const char *path)
{
	struct reader r;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "scheme: %s: %s\n", path, strerror(errno));
		return TOP_ERROR;
	}
	reader_init(&r, fd, base_name(path));
	int why = read_and_run(&r, false, false);
	close(fd);
	return why;
}

static int run_files(const struct options *o)
{
	for (int i = 0; i < o->nfiles; i++) {
		const char *name = base_name(o->files[i]);

		if (o->report)
			report_begin(name);
		int why = run_file(o->files[i]);

		if (why == TOP_ERROR)
			return 1;
		if (o->report)
			report_end(name);
		if (why == TOP_EXIT)
			break;
	}
	return vm.status;
}

static void *interpreter(void *arg)
{
	const struct options *o = arg;

	if (rt_thread_attach(0) != RT_OK ||
	    rt_roots_add(&vm, &vm + 1, RT_ROOT_WORDS) != RT_OK) {
		fputs("scheme: no memory\n", stderr);
		vm.status = 1;
		return NULL;
	}
	if (setjmp(vm.top) == 0) {
		make_vm();
		vm.status = o->nfiles ? run_files(o) : repl();
	} else {
		vm.status = 1;
	}
	if (o->report && vm.status == 0 && !report())
		vm.status = 1;
	rt_fini();
	return NULL;
}

static bool run_thread(struct options *o)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error = pthread_attr_init(&attr);

	if (!error)
		error = pthread_attr_setstacksize(&attr, STACK_SIZE);
	if (!error)
		error = pthread_create(&thread, &attr, interpreter, o);
	if (!error)
		error = pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return !error;
}

static bool parse_percent(const char *text, struct options *o)
{
	char *end;
	long n = text ? strtol(text, &end, 10) : 0;

	if (!text || end == text || *end || n < -1 || n > INT_MAX)
		return false;
	o->gc_percent = (int)n;
	o->has_percent = true;
	return true;
}

static bool parse(char **argv, struct options *o)
{
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		if (!strcmp(*argv, "--report"))
			o->report = true;
		else if (strcmp(*argv, "--gc-percent") != 0 ||
			 !parse_percent(*++argv, o))
			return false;
	}
	o->files = argv;
	while (argv[o->nfiles])
		o->nfiles++;
	return true;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	rt_config config;

	if (argc < 1 || !parse(argv, &o)) {
		fputs("usage: scheme [--report] [--gc-percent N] [FILE...]\n",
		      stderr);
		return 2;
	}
	rt_config_init(&config);
	rt_config_from_env(&config);
	config.no_attach = 1;
	if (o.has_percent)
		config.gc_percent = o.gc_percent;
	int error = rt_init(&config);
	if (error) {
		fprintf(stderr, "scheme: %s\n", rt_strerror(error));
		return 1;
	}
	if (!run_thread(&o)) {
		fputs("scheme: no thread\n", stderr);
		return 1;
	}
	return fflush(stdout) ? 1 : vm.status;
}
