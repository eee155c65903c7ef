// Breakpoints at the probes of this program (USDT).
#define _GNU_SOURCE // REG_RAX
#include "test/whole/trap.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/base/base.h"

#if defined __x86_64__ && RT_PROBES

static struct trap traps[TRAP_PLACES];
static unsigned ntraps;
static uint64_t all_passes;

// ---- the program's file ----

static struct file {
	const char *bytes;
	size_t size;
	uintptr_t moved; // the program's address less that in the file
} file;

static const Elf64_Ehdr *header(void)
{
	return (const Elf64_Ehdr *)file.bytes;
}

static void open_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	file.size = (size_t)st.st_size;
	file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(file.bytes, MAP_FAILED);
	close(fd);
	ck_assert(memcmp(header()->e_ident, ELFMAG, SELFMAG) == 0);
	// The program headers are e_phoff bytes behind the beginning of the
	// program.
	if (header()->e_type == ET_DYN)
		file.moved = getauxval(AT_PHDR) - header()->e_phoff;
}

static const Elf64_Shdr *section(const char *name)
{
	const Elf64_Shdr *s =
	    (const Elf64_Shdr *)(file.bytes + header()->e_shoff);
	const char *names = file.bytes + s[header()->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < header()->e_shnum; i++)
		if (strcmp(names + s[i].sh_name, name) == 0)
			return &s[i];
	return NULL;
}

// symbol returns the address of a symbol whose name has n bytes.
static uintptr_t symbol(const char *name, size_t n)
{
	const Elf64_Shdr *table = section(".symtab");
	const Elf64_Shdr *strings = section(".strtab");
	const Elf64_Sym *sym;

	ck_assert(table && strings);
	sym = (const Elf64_Sym *)(file.bytes + table->sh_offset);
	for (size_t i = 0; i < table->sh_size / sizeof *sym; i++) {
		const char *s =
		    file.bytes + strings->sh_offset + sym[i].st_name;

		if (strncmp(s, name, n) == 0 && s[n] == '\0' &&
		    sym[i].st_shndx != SHN_UNDEF)
			return file.moved + sym[i].st_value;
	}
	ck_abort_msg("no symbol %.*s", (int)n, name);
}

// ---- arguments: SIZE@OPERAND, as the assembler has operands ----

// The registers, and the names that their low parts have.
static const struct {
	int number;
	const char *names;
} registers[] = {
    {REG_RAX, "rax eax ax al "},      {REG_RBX, "rbx ebx bx bl "},
    {REG_RCX, "rcx ecx cx cl "},      {REG_RDX, "rdx edx dx dl "},
    {REG_RSI, "rsi esi si sil "},     {REG_RDI, "rdi edi di dil "},
    {REG_RBP, "rbp ebp bp bpl "},     {REG_RSP, "rsp esp sp spl "},
    {REG_R8, "r8 r8d r8w r8b "},      {REG_R9, "r9 r9d r9w r9b "},
    {REG_R10, "r10 r10d r10w r10b "}, {REG_R11, "r11 r11d r11w r11b "},
    {REG_R12, "r12 r12d r12w r12b "}, {REG_R13, "r13 r13d r13w r13b "},
    {REG_R14, "r14 r14d r14w r14b "}, {REG_R15, "r15 r15d r15w r15b "},
};

// The parts of an argument.  Its value is the sum of all parts or, if that is
// an address, the memory there.
struct operand {
	int size; // of the value; below 0: it has a sign
	bool address;
	uint64_t sum;
	int base, index; // registers, or -1
	uint64_t scale;
};

static size_t word_length(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_.$");
}

// take_register reads %NAME.  Returns -1 for rip: nothing is added to the
// address of a symbol then.
static int take_register(const char **s)
{
	size_t n = word_length(*s + 1);
	char name[8];

	ck_assert(**s == '%' && n < sizeof name - 1);
	memcpy(name, *s + 1, n);
	memcpy(name + n, " ", 2);
	*s += n + 1;
	if (strcmp(name, "rip ") == 0)
		return -1;
	for (unsigned i = 0; i < RT_ARRAY_LEN(registers); i++) {
		const char *at = strstr(registers[i].names, name);

		if (at && (at == registers[i].names || at[-1] == ' '))
			return registers[i].number;
	}
	ck_abort_msg("no register %s", name);
}

// take_sum reads numbers and symbols that are added.
static uint64_t take_sum(const char **s)
{
	uint64_t sum = 0;

	while (**s == '$' || **s == '+' || **s == '-' || word_length(*s) != 0) {
		if (**s == '$') {
			++*s;
		} else if (strchr("+-0123456789", **s)) {
			bool joined = **s == '+' && word_length(*s + 1) != 0 &&
				      !strchr("0123456789", (*s)[1]);

			if (joined)
				++*s;
			else
				sum += (uint64_t)strtoll(*s, (char **)s, 0);
		} else {
			size_t n = word_length(*s);

			sum += symbol(*s, n);
			*s += n;
		}
	}
	return sum;
}

// take_operand reads an argument and the blank behind it.
static struct operand take_operand(const char **s)
{
	struct operand o = {.base = -1, .index = -1, .scale = 1};

	o.size = (int)strtol(*s, (char **)s, 10);
	ck_assert(*(*s)++ == '@');
	if (**s == '%') {
		o.base = take_register(s);
	} else {
		o.sum = take_sum(s);
		if (**s == '(') {
			++*s;
			o.address = true;
			if (**s == '%')
				o.base = take_register(s);
			if (**s == ',') {
				++*s;
				o.index = take_register(s);
				if (**s == ',') {
					++*s;
					o.scale = take_sum(s);
				}
			}
			ck_assert(*(*s)++ == ')');
		}
	}
	ck_assert_msg(**s == ' ' || **s == '\0', "operand: %s", *s);
	*s += **s == ' ';
	return o;
}

static uint64_t value(const struct operand *o, const ucontext_t *c)
{
	const greg_t *regs = c->uc_mcontext.gregs;
	unsigned bytes = (unsigned)abs(o->size);
	uint64_t v = o->sum;

	if (o->base >= 0)
		v += (uint64_t)regs[o->base];
	if (o->index >= 0)
		v += (uint64_t)regs[o->index] * o->scale;
	if (o->address) {
		uint64_t there = 0;

		memcpy(&there, (const void *)(uintptr_t)v, bytes);
		v = there;
	}
	if (bytes == 8)
		return v;
	v &= (UINT64_C(1) << bytes * 8) - 1;
	if (o->size < 0 && v >> (bytes * 8 - 1) != 0)
		v |= ~UINT64_C(0) << bytes * 8;
	return v;
}

// ---- breakpoints ----

static void pass(struct trap *t, const ucontext_t *c)
{
	const char *s = t->arguments;

	t->when = ++all_passes;
	for (t->n = 0; *s != '\0'; t->n++) {
		struct operand o = take_operand(&s);

		ck_assert_uint_lt(t->n, TRAP_ARGUMENTS);
		t->argument[t->n] = value(&o, c);
	}
	// Pairs with the acquire in trap_passes: another thread may wait for
	// this.
	__atomic_store_n(&t->passes, t->passes + 1, __ATOMIC_RELEASE);
}

// The nop and the breakpoint each have one byte.  So the thread continues
// behind the breakpoint as it would behind the nop.
static void trapped(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	uintptr_t at = (uintptr_t)c->uc_mcontext.gregs[REG_RIP] - 1;

	(void)info;
	for (unsigned i = 0; i < ntraps; i++)
		if (traps[i].at == at) {
			pass(&traps[i], c);
			return;
		}
	signal(sig, SIG_DFL);
	raise(sig);
}

static void add(const char *desc, uintptr_t moved)
{
	const char *provider = desc + 3 * sizeof(uint64_t);
	const char *name = provider + strlen(provider) + 1;
	struct trap *t = &traps[ntraps++];
	uint64_t at;

	ck_assert_uint_le(ntraps, TRAP_PLACES);
	ck_assert_str_eq(provider, "rtheap");
	ck_assert_uint_lt(strlen(name), TRAP_NAME);
	strcpy(t->name, name);
	memcpy(&at, desc, sizeof at);
	t->at = moved + at;
	t->arguments = name + strlen(name) + 1;
}

static void read_notes(void)
{
	const Elf64_Shdr *notes = section(".note.stapsdt");
	const Elf64_Shdr *base = section(".stapsdt.base");
	const char *end, *at;

	ck_assert(notes && base);
	at = file.bytes + notes->sh_offset;
	end = at + notes->sh_size;
	while (at < end) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
		const char *desc =
		    at + sizeof *n + base_align_up(n->n_namesz, 4);
		uint64_t was;

		// The second word is the address that .stapsdt.base had when
		// the note was written.
		memcpy(&was, desc + sizeof was, sizeof was);
		add(desc, file.moved + base->sh_addr - was);
		at = desc + base_align_up(n->n_descsz, 4);
	}
}

// may_write makes the page of some code writable, or not.  Returns false if the
// system refuses that.
static bool may_write(uintptr_t code, bool writable)
{
	return mprotect((void *)(code & ~(uintptr_t)4095), 4096,
			PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) ==
	       0;
}

static void set(const struct trap *t)
{
	unsigned char *nop = (unsigned char *)t->at;

	ck_assert_uint_eq(*nop, 0x90);
	ck_assert(may_write(t->at, true));
	*nop = 0xcc;
	ck_assert(may_write(t->at, false));
}

bool trap_works(void)
{
	const uintptr_t code = (uintptr_t)&trap_works;
	volatile unsigned char *byte = (volatile unsigned char *)code;

	if (!may_write(code, true))
		return false;
	*byte = *byte; // a page that was written may not become code again
	return may_write(code, false);
}

unsigned trap_set(void)
{
	struct sigaction act = {.sa_sigaction = trapped,
				.sa_flags = SA_SIGINFO};

	open_file();
	read_notes();
	ck_assert_int_eq(sigaction(SIGTRAP, &act, NULL), 0);
	for (unsigned i = 0; i < ntraps; i++)
		set(&traps[i]);
	return ntraps;
}

const struct trap *trap_last(const char *name)
{
	const struct trap *last = NULL;

	for (unsigned i = 0; i < ntraps; i++)
		if (strcmp(traps[i].name, name) == 0 && traps[i].passes != 0 &&
		    (!last || traps[i].when > last->when))
			last = &traps[i];
	return last;
}

uint64_t trap_passes(const char *name)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < ntraps; i++)
		if (strcmp(traps[i].name, name) == 0)
			n +=
			    __atomic_load_n(&traps[i].passes, __ATOMIC_ACQUIRE);
	return n;
}

#else

bool trap_works(void)
{
	return false;
}

unsigned trap_set(void)
{
	return 0;
}

const struct trap *trap_last(const char *name)
{
	(void)name;
	return NULL;
}

uint64_t trap_passes(const char *name)
{
	(void)name;
	return 0;
}

#endif
