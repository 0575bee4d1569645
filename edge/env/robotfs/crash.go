package robotfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// CrashUploaderFile configures crash records and their upload (VEC-CRS-04).
const CrashUploaderFile = "anki/etc/vic-crashuploader.env"

// CrashFolder returns the folder of crash records below the robot's root: VIC_CRASH_FOLDER, or crashDumps in the cache. A folder outside data/, which a wipe
// would not erase, is refused: the usual one is returned beside the error.
func CrashFolder(root *os.Root, getenv func(string) string) (string, error) {
	usual := Cache + "/crashDumps"
	e := LoadEnv(root, CrashUploaderFile, getenv)
	dir := path.Clean("/" + e.String("VIC_CRASH_FOLDER", usual))[1:]
	if !strings.HasPrefix(dir, "data/") || strings.ContainsRune(dir, 0) {
		return usual, errors.Join(e.Err(), fmt.Errorf("%s: VIC_CRASH_FOLDER is %.100q: want a folder below data/", CrashUploaderFile, dir))
	}
	return dir, e.Err()
}
