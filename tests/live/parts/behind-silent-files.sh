# In a mount namespace of its own: mounts an overlay over files of a server, and becomes its program. The process id of
# the server is in the file `server`. $1: a device of FUSE.
set -e
mount -t tmpfs mounts /mnt
mkdir /mnt/files /mnt/empty /mnt/seen
./silent_files ./spin /mnt/files "$1" > server
mount -t overlay seen -o lowerdir=/mnt/files:/mnt/empty /mnt/seen
exec /mnt/seen/program
