package platform

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"kennel/edge/env/robotfs"
)

// The .env files of the original's services (VEC-CLD-05; part of VEC-CLD-02 crashes and updates, as events go by MQTT), with the defaults of the seed's tables 578, 579, 582, 584 and 586 for
// every key that is absent. Each loader returns what could be read together with the first mistake: a robot does not stay down for a typing
// mistake. A variable KENNEL_<KEY> of the process overrides the files.
const (
	UpdateEngineFile        = "anki/etc/update-engine.env"
	UpdateEngineOneshotFile = "run/update-engine-oneshot.env"
	UpdateEngineAppFile     = "run/vic-switchboard/update-engine.env"
	RebooterFile            = "data/etc/rebooter.env"
	LogUploaderFile         = "anki/etc/vic-log-uploader.env"
	CrashUploaderFile       = robotfs.CrashUploaderFile
	FaultHandlerFile        = "anki/etc/fault-code-handler.env"
	GatewayCertFile         = "anki/etc/vic-gateway-cert.env"
)

// UpdateEngine configures downloads of releases.
type UpdateEngine struct {
	AllowDowngrade bool
	DevBaseURL     string // on development robots, in place of BaseURL; "": BaseURL
	BaseURL        string // asked when URL is "auto"
	BaseURLLatest  string
	Enabled        bool // does not appear to be used by the original
	Debug          bool
	OTAType        string
	Shard          string
	UseSharding    bool
	URL            string // "auto", or the one archive to get
}

// LoadUpdateEngine reads the three files: of the release, of one run, of the app's request; the later goes before the earlier.
func LoadUpdateEngine(root *os.Root, getenv func(string) string) (UpdateEngine, error) {
	e := robotfs.LoadEnv(root, UpdateEngineFile, getenv, UpdateEngineOneshotFile, UpdateEngineAppFile)
	c := UpdateEngine{
		AllowDowngrade: e.Bool("UPDATE_ENGINE_ALLOW_DOWNGRADE", false),
		DevBaseURL:     e.String("UPDATE_ENGINE_ANKIDEV_BASE_URL", ""),
		BaseURL:        e.String("UPDATE_ENGINE_BASE_URL", ""),
		BaseURLLatest:  e.String("UPDATE_ENGINE_BASE_URL_LATEST", ""),
		Enabled:        e.Bool("UPDATE_ENGINE_ENABLED", true),
		Debug:          e.Bool("UPDATE_ENGINE_DEBUG", false),
		OTAType:        e.String("UPDATE_ENGINE_OTA_TYPE", "diff"),
		Shard:          e.String("UPDATE_ENGINE_SHARD", ""),
		UseSharding:    e.Bool("UPDATE_ENGINE_USE_SHARDING", false),
		URL:            e.String("UPDATE_ENGINE_URL", "auto"),
	}
	return c, e.Err()
}

// Rebooter configures the nightly reboot.
type Rebooter struct {
	Earliest, Latest time.Duration // after midnight
	InhibitorDelay   time.Duration
	MinimumUptime    time.Duration
	Verbose          bool
}

// LoadRebooter reads RebooterFile.
func LoadRebooter(root *os.Root, getenv func(string) string) (Rebooter, error) {
	e := robotfs.LoadEnv(root, RebooterFile, getenv)
	const day = 24 * time.Hour
	c := Rebooter{
		Earliest:       e.Seconds("REBOOTER_EARLIEST", 3600*time.Second, day),
		Latest:         e.Seconds("REBOOTER_LATEST", 18000*time.Second, day),
		InhibitorDelay: e.Seconds("REBOOTER_INHIBITOR_DELAY", 17*time.Second, day),
		MinimumUptime:  e.Seconds("REBOOTER_MINIMUM_UPTIME", 14400*time.Second, 365*day),
		Verbose:        e.Bool("REBOOTER_VERBOSE_LOGGING", false),
	}
	return c, e.Err()
}

// LogUploader configures the upload of logs.
type LogUploader struct {
	Verbose bool
	Folder  string // "": the cache tree's outgoing folder
	QuotaMB int    // the oldest files are deleted until the rest fits
	Every   time.Duration
}

// Outgoing returns the folder below the robot's root in which logs wait for their upload. The files name theirs from the root. One that no wipe would
// erase is refused, and the usual one is returned beside the error.
func (l LogUploader) Outgoing(root *os.Root) (string, error) {
	t, err := LoadTrees(root)
	usual := t.Cache + "/outgoing"
	if l.Folder == "" {
		return usual, err
	}
	dir := path.Clean("/" + l.Folder)[1:]
	if !Personal(dir) {
		return usual, errors.Join(err, fmt.Errorf("%s: VIC_LOG_UPLOADER_FOLDER is %q: want a folder for personal data", LogUploaderFile, l.Folder))
	}
	return dir, err
}

// LoadLogUploader reads LogUploaderFile.
func LoadLogUploader(root *os.Root, getenv func(string) string) (LogUploader, error) {
	e := robotfs.LoadEnv(root, LogUploaderFile, getenv)
	c := LogUploader{
		Verbose: e.Bool("VERBOSE", false),
		Folder:  e.String("VIC_LOG_UPLOADER_FOLDER", ""),
		QuotaMB: e.Int("VIC_LOG_UPLOADER_QUOTA_MB", 10, 0, 1<<20),
		Every:   e.Seconds("VIC_LOG_UPLOADER_SLEEP_SEC", 30*time.Second, 24*time.Hour),
	}
	return c, e.Err()
}

// UploadsFile is the agent's own file (info.EnvFile), which has the switches of the ways by which data leave the robot.
const UploadsFile = "anki/etc/kennel-agent.env"

// Uploads says which of the original's four ways are open (VEC-LOG-01). They are independent; the owner's consent is asked on each.
type Uploads struct {
	Logs      bool // waiting log files (vic-log-upload)
	Snapshots bool // of recent logs (vic-logmgr-upload)
	Crashes   bool // crash dumps
	Events    bool // analytics events
}

// LoadUploads reads UploadsFile.
func LoadUploads(root *os.Root, getenv func(string) string) (Uploads, error) {
	e := robotfs.LoadEnv(root, UploadsFile, getenv)
	c := Uploads{Logs: e.Bool("UPLOAD_LOGS", true), Snapshots: e.Bool("UPLOAD_SNAPSHOTS", true), Crashes: e.Bool("UPLOAD_CRASHES", true), Events: e.Bool("UPLOAD_EVENTS", true)}
	return c, e.Err()
}

// CrashUploader configures the upload of crash dumps.
type CrashUploader struct {
	Folder     string // below the robot's root
	Every      time.Duration
	KeepLatest int // older ones are deleted
	UploadLog  bool
	URL        string // "": the cloud's own; the seed also calls it hard coded, and the file wins
}

// LoadCrashUploader reads CrashUploaderFile.
func LoadCrashUploader(root *os.Root, getenv func(string) string) (CrashUploader, error) {
	e := robotfs.LoadEnv(root, CrashUploaderFile, getenv)
	dir, err := robotfs.CrashFolder(root, getenv)
	const most = 24 * time.Hour
	c := CrashUploader{
		Folder:     dir,
		Every:      e.Seconds("VIC_CRASH_SCRAPER_PERIOD_SEC", e.Seconds("VIC_CRASH_SCRAPE_PERIOD_SEC", 30*time.Second, most), most), // the source spells it both ways
		KeepLatest: e.Int("VIC_CRASH_UPLOADER_KEEP_LATEST", 30, 0, 1<<20),
		UploadLog:  e.Int("VIC_CRASH_UPLOAD_LOG", 0, 0, 1<<20) > 0,
		URL:        e.String("VIC_CRASH_UPLOAD_URL", ""),
	}
	return c, errors.Join(e.Err(), err)
}

// FaultHandler configures what happens on a fault (VEC-FLT-07).
type FaultHandler struct {
	RestartCount int
	RestartLimit int
	LimitWindow  time.Duration
	Restart      bool
	UploadLog    int
	UploadTrace  int
	SigtermAfter time.Duration
	RestartAfter time.Duration
	Verbose      bool
}

// LoadFaultHandler reads FaultHandlerFile.
func LoadFaultHandler(root *os.Root, getenv func(string) string) (FaultHandler, error) {
	e := robotfs.LoadEnv(root, FaultHandlerFile, getenv)
	c := FaultHandler{
		RestartCount: e.Int("FAULT_RESTART_COUNT", 0, 0, 1_000_000),
		RestartLimit: e.Int("FAULT_RESTART_LIMIT", 2, 0, 1_000_000),
		LimitWindow:  e.Seconds("FAULT_RESTART_LIMIT_SEC", 60*time.Second, 24*time.Hour),
		Restart:      e.Bool("ON_FAULT_RESTART", false),
		UploadLog:    e.Int("ON_FAULT_UPLOAD_LOG", 0, 0, 1<<20),
		UploadTrace:  e.Int("ON_FAULT_UPLOAD_TRACE", 0, 0, 1<<20),
		SigtermAfter: e.Seconds("TIMEOUT_SIGTERM_SEC", 3*time.Second, time.Hour),
		RestartAfter: e.Seconds("TIMEOUT_RESTART_SEC", 5*time.Second, time.Hour),
		Verbose:      e.Bool("VERBOSE", false),
	}
	return c, e.Err()
}

// LoadGatewayFault returns the fault to raise if the gateway certificate cannot be made, from GatewayCertFile. The seed says what the
// file holds and not under which key.
func LoadGatewayFault(root *os.Root, getenv func(string) string) (int, error) {
	e := robotfs.LoadEnv(root, GatewayCertFile, getenv)
	c := e.Int("FAULT_CODE", 920, 1, 999)
	return c, e.Err()
}
