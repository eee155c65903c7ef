// main.c - scheme [--report] [--gc-percent N] FILE...
//
// Programs run one after the other in one heap; without a file, there is a
// prompt.  The interpreter has its own thread, because recursion in Scheme is
// recursion in C and needs more stack than the main thread is sure to have.
#include "scheme.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../report.h"

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

// ---- all procedures that programs begin with

static const struct builtin builtins[] = {
    {"apply", .fn = prim_apply, .min = 2, .max = ANY},
    {"cons", .f2 = cons},
    {"car", .f1 = prim_car},
    {"cdr", .f1 = prim_cdr},
    {"caar", .f1 = prim_cxr},
    {"cadr", .f1 = prim_cxr},
    {"cdar", .f1 = prim_cxr},
    {"cddr", .f1 = prim_cxr},
    {"caddr", .f1 = prim_cxr},
    {"cdddr", .f1 = prim_cxr},
    {"cadddr", .f1 = prim_cxr},
    {"set-car!", .f2 = prim_set_car},
    {"set-cdr!", .f2 = prim_set_cdr},
    {"pair?", .f1 = prim_is_pair},
    {"null?", .f1 = prim_is_null},
    {"list?", .f1 = prim_is_list},
    {"list", .fn = prim_list, .min = 0, .max = ANY},
    {"length", .f1 = prim_length},
    {"append", .fn = prim_append, .min = 0, .max = ANY},
    {"reverse", .f1 = prim_reverse},
    {"list-tail", .f2 = prim_list_tail},
    {"list-ref", .f2 = prim_list_ref},
    {"map", .fn = prim_map, .min = 2, .max = ANY},
    {"for-each", .fn = prim_for_each, .min = 2, .max = ANY},
    {"eq?", .f2 = prim_same, .same = eq},
    {"eqv?", .f2 = prim_same, .same = eqv},
    {"equal?", .f2 = prim_same, .same = equal},
    {"memq", .f2 = prim_member, .same = eq},
    {"memv", .f2 = prim_member, .same = eqv},
    {"member", .f2 = prim_member, .same = equal},
    {"assq", .f2 = prim_assoc, .same = eq},
    {"assv", .f2 = prim_assoc, .same = eqv},
    {"assoc", .f2 = prim_assoc, .same = equal},
    {"vector?", .f1 = prim_is_type, .type = VECTOR},
    {"make-vector", .fn = prim_make_vector, .min = 1, .max = 2},
    {"vector", .fn = prim_vector, .min = 0, .max = ANY},
    {"vector-ref", .f2 = prim_vector_ref},
    {"vector-set!", .f3 = prim_vector_set},
    {"vector-length", .f1 = prim_vector_length},
    {"vector->list", .f1 = prim_vector_to_list},
    {"list->vector", .f1 = prim_list_to_vector},
    {"+", .f2 = prim_add, .fn = prim_fold, .min = 0, .max = ANY},
    {"-", .f2 = prim_sub, .fn = prim_fold, .min = 1, .max = ANY},
    {"*", .f2 = prim_mul, .fn = prim_fold, .min = 0, .max = ANY, .unit = 1},
    {"/", .f2 = prim_div, .fn = prim_fold, .min = 1, .max = ANY, .unit = 1},
    {"max", .f2 = prim_max, .fn = prim_fold, .min = 2, .max = ANY},
    {"min", .f2 = prim_min, .fn = prim_fold, .min = 2, .max = ANY},
    {"=", .f2 = prim_num_equal, .fn = prim_chain, .min = 2, .max = ANY},
    {"<", .f2 = prim_less, .fn = prim_chain, .min = 2, .max = ANY},
    {">", .f2 = prim_greater, .fn = prim_chain, .min = 2, .max = ANY},
    {"<=", .f2 = prim_not_greater, .fn = prim_chain, .min = 2, .max = ANY},
    {">=", .f2 = prim_not_less, .fn = prim_chain, .min = 2, .max = ANY},
    {"quotient", .f2 = prim_quotient},
    {"remainder", .f2 = prim_remainder},
    {"modulo", .f2 = prim_modulo},
    {"number?", .f1 = prim_is_number},
    {"integer?", .f1 = prim_is_integer},
    {"zero?", .f1 = prim_is_zero},
    {"odd?", .f1 = prim_is_odd},
    {"even?", .f1 = prim_is_even},
    {"abs", .f1 = prim_abs},
    {"expt", .f2 = prim_expt},
    {"sqrt", .f1 = prim_sqrt},
    {"exp", .f1 = prim_exp},
    {"sin", .f1 = prim_sin},
    {"cos", .f1 = prim_cos},
    {"number->string", .f1 = prim_number_to_string},
    {"string->number", .f1 = prim_string_to_number},
    {"char?", .f1 = prim_is_char},
    {"char->integer", .f1 = prim_char_to_integer},
    {"integer->char", .f1 = prim_integer_to_char},
    {"char=?", .f2 = prim_char_equal},
    {"char<?", .f2 = prim_char_less},
    {"string?", .f1 = prim_is_type, .type = STRING},
    {"make-string", .fn = prim_make_string, .min = 1, .max = 2},
    {"string-length", .f1 = prim_string_length},
    {"string-ref", .f2 = prim_string_ref},
    {"string-set!", .f3 = prim_string_set},
    {"string-append", .fn = prim_string_append, .min = 0, .max = ANY},
    {"substring", .fn = prim_substring, .min = 2, .max = 3},
    {"string=?", .f2 = prim_string_equal},
    {"string<?", .f2 = prim_string_less},
    {"string->list", .f1 = prim_string_to_list},
    {"list->string", .f1 = prim_list_to_string},
    {"symbol?", .f1 = prim_is_type, .type = SYMBOL},
    {"symbol->string", .f1 = prim_symbol_to_string},
    {"string->symbol", .f1 = prim_string_to_symbol},
    {"procedure?", .f1 = prim_is_procedure},
    {"boolean?", .f1 = prim_is_boolean},
    {"not", .f1 = prim_not},
    {"display", .f1 = prim_display},
    {"write", .f1 = prim_write},
    {"newline", .f0 = prim_newline},
    {"read", .f0 = prim_read},
    {"eof-object?", .f1 = prim_is_eof},
    {"error", .fn = prim_error, .min = 1, .max = ANY},
    {"exit", .fn = prim_exit, .min = 0, .max = 1},
    {"gc", .f0 = prim_gc},
};

static void make_vm(void)
{
	vm.self = rt_thread_self();
	vm.stack_limit =
	    (uintptr_t)__builtin_frame_address(0) - STACK_SIZE + STACK_RESERVE;
	reader_init(&standard_input, STDIN_FILENO, "stdin");
	vm.at = standard_input.at;
	vm.sym_else = symbol_named("else");
	vm.sym_arrow = symbol_named("=>");
	vm.sym_quote = symbol_named("quote");
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		define_primitive(&builtins[i]);
	define_syntax();
}

// read_and_run runs all forms.  It returns 0, or the reason why it stopped.
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

// run_file returns 0, or the reason why it stopped.
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

static int no_memory(void)
{
	fputs("scheme: no memory\n", stderr);
	return 1;
}

static int run_files(const struct options *o)
{
	for (int i = 0; i < o->nfiles; i++) {
		const char *name = base_name(o->files[i]);

		if (o->report && !records_begin(name))
			return no_memory();
		int why = run_file(o->files[i]);

		if (why == TOP_ERROR)
			return 1;
		if (o->report && !records_end(name))
			return no_memory();
		if (why == TOP_EXIT)
			break;
	}
	return vm.status;
}

// report returns whether its sums are right.
static bool report(void)
{
	records_print();
	return report_print(stdout);
}

static void *interpreter(void *arg)
{
	const struct options *o = arg;

	if (rt_thread_attach(0) != RT_OK ||
	    rt_roots_add(&vm, &vm + 1, RT_ROOT_WORDS) != RT_OK) {
		vm.status = no_memory();
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
