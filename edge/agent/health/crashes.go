package health

import (
	"kennel/edge/agent/health/crashes"
	"kennel/edge/agent/host"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/logging"
)

// openCrashes opens the crashes of the robot's programs. CRASH_WITHOUT_CONSENT sends dumps as the original does.
func (h *Health) openCrashes() *crashes.Collector {
	conf, err := platform.LoadCrashUploader(h.Root, h.Getenv)
	if err != nil {
		h.Log.Error("settings ignored", logging.Err, err)
	}
	ways, _ := platform.LoadUploads(h.Root, h.Getenv) // its mistakes are logged with the events
	env := robotfs.LoadEnv(h.Root, host.EnvFile, h.Getenv)
	always := env.Bool("CRASH_WITHOUT_CONSENT", false)
	if err := env.Err(); err != nil {
		h.Log.Error("settings ignored", logging.Err, err)
	}
	return crashes.New(crashes.Config{Robot: h.Robot, Conf: conf, Open: ways.Crashes, Always: always, Allowed: h.cfg.Upload, Host: h.cfg.Host, Upload: h.cfg.Send})
}
