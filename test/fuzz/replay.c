// replay.c - runs a fuzz target on the inputs of its corpus.
//
// usage: fuzz_TARGET [FILE|DIRECTORY]...
//
// Without arguments it runs the directory $srcdir/test/corpus/TARGET.  The name
// of an input is printed before it runs, so the last one in the log is the one
// that failed.  Each runs twice in a row: an input must leave nothing behind.
#include "test/fuzz/fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

enum { INPUT_ROOM = 1 << 20, PATH_ROOM = 4096 };

static unsigned passed, failed;

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_ROOM), *exact;
	size_t size;

	fprintf(stderr, "%s\n", path);
	if (!file || !data) {
		fprintf(stderr, "cannot be read\n");
		failed++;
		free(data);
		return;
	}
	size = fread(data, 1, INPUT_ROOM, file);
	fclose(file);
	// The buffer is as long as the input, so the address sanitizer reports
	// a read past its end.
	exact = realloc(data, size > 0 ? size : 1);
	data = exact ? exact : data;
	LLVMFuzzerTestOneInput(data, size);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	passed++;
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void replay_directory(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, is_visible, alphasort);

	if (n <= 0) {
		fprintf(stderr, "%s: no inputs\n", path);
		failed++;
		return;
	}
	for (int i = 0; i < n; i++) {
		char file[PATH_ROOM];

		snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
		replay_file(file);
		free(names[i]);
	}
	free(names);
}

static void replay(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		replay_directory(path);
	else
		replay_file(path);
}

// own_name returns the program's name, even when libtool's wrapper runs it.
static const char *own_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	const char *name = slash ? slash + 1 : argv0;

	return strncmp(name, "lt-", 3) == 0 ? name + 3 : name;
}

int main(int argc, char **argv)
{
	const char *name = own_name(argv[0]);
	const char *srcdir = getenv("srcdir");
	char corpus[PATH_ROOM];

	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc == 1) {
		snprintf(corpus, sizeof corpus, "%s/test/corpus/%s",
			 srcdir ? srcdir : ".", name + strlen("fuzz_"));
		replay(corpus);
	}
	printf("%s: %u passed, %u failed\n", name, passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
