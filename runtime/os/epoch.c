// The variable that epoch.h declares.
#include "runtime/os/epoch.h"

struct epoch epoch;
