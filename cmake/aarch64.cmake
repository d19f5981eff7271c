# Builds for aarch64 with Debian's cross compiler and the :arm64 development packages (scripts/install-deps aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Libraries that scripts/install-deps has put there; otherwise not below /usr/local: those are the host's.
list(APPEND CMAKE_LIBRARY_PATH /usr/local/aarch64-linux-gnu/lib)
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH TRUE)
set(CMAKE_SYSTEM_IGNORE_PREFIX_PATH /usr/local)
