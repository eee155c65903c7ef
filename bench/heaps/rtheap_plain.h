// rtheap_plain.h - rtheap for a host that stores pointers as C does.
#define HEAP_PLAIN 1
#include "rtheap.h"
