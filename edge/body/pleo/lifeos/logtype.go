package lifeos

// LogType is the subject of a message; scripts give it a bit (PLEO-MON-03).
type LogType uint8

// The subjects. The first five are levels.
const (
	LogFatal LogType = iota
	LogError
	LogWarning
	LogInfo
	LogDebug
	LogMonitor
	LogMonInit
	LogMonUpdate
	LogLowLevel
	LogHighLevel
	LogVM
	LogSensor
	LogJoint
	LogMotion
	LogSound
	LogTiming
	LogIO
	LogAnim
	LogDrive
	LogEmotion
	LogScript
	LogCam
	LogAttention
	LogProperty
	LogSeq // PLEO-SEQ-10
	LogNXP
	LogResource
	LogPlog
	LogApplication
	LogManager
	logCount
)

var logNames = [logCount]string{"fatal", "error", "warning", "info", "debug", "monitor", "moninit", "monupdate", "lowlevel", "highlevel", "vm", "sensor", "joint",
	"motion", "sound", "timing", "io", "anim", "drive", "emotion", "script", "cam", "attention", "property", "seq", "nxp", "resource", "plog", "application", "manager"}

// bootTypes are on after power-on.
const bootTypes = 1<<LogError | 1<<LogWarning | 1<<LogScript

func (t LogType) String() string {
	if t < logCount {
		return logNames[t]
	}
	return "unknown"
}

// logTypesOf returns the bits of a name of the monitor's commands: "all", "stats", or one of the types.
func logTypesOf(name string) (uint32, bool) {
	switch name {
	case "all":
		return 1<<logCount - 1, true
	case "stats": // shares its bit
		return 1 << LogResource, true
	}
	for t, n := range logNames {
		if n == name {
			return 1 << t, true
		}
	}
	return 0, false
}
