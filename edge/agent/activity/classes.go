package activity

// The classes of features, as the lifetime statistics spell them after "FeatureType." (part of VEC-DOC-08).
const (
	autonomous = "Autonomous"
	failure    = "Failure"
	sleep      = "Sleep"
	social     = "Social"
	play       = "Play"
	utility    = "Utility"
)

// classes holds the 70 features of annex C with their classes; "": it is none. Which class a feature has is our own: the source does not say.
var classes = map[string]string{
	"Alexa":                utility,
	"AskForHelp":           failure,
	"BasicVoiceCommand":    utility,
	"BeQuiet":              social,
	"Blackjack":            play,
	"CantDoThat":           failure,
	"ComeHere":             social,
	"CubeSpinner":          play,
	"DanceToTheBeat":       play,
	"Exploring":            autonomous,
	"FetchCube":            play,
	"FindCube":             play,
	"FindHome":             utility,
	"FistBump":             play,
	"Frustrated":           failure,
	"GoHome":               utility,
	"HeldInPalm":           social,
	"HowOldAreYou":         utility,
	"InteractWithFaces":    social,
	"InTheAir":             autonomous,
	"KeepAway":             play,
	"KnowledgeGraph":       utility,
	"ListeningForBeats":    autonomous,
	"LookAtMe":             social,
	"LowBattery":           autonomous,
	"MeetVector":           social,
	"MoveCube":             play,
	"MovementBackward":     utility,
	"MovementForward":      utility,
	"MovementLeft":         utility,
	"MovementRight":        utility,
	"MovementTurnAround":   utility,
	"NoFeature":            "",
	"Observing":            autonomous,
	"ObservingOnCharger":   autonomous,
	"Petting":              social,
	"PlayingMessage":       utility,
	"PopAWheelie":          play,
	"ReactToAbuse":         social,
	"ReactToAffirmative":   social,
	"ReactToApology":       social,
	"ReactToCliff":         autonomous,
	"ReactToGazeDirection": social,
	"ReactToGoodBye":       social,
	"ReactToGoodMorning":   social,
	"ReactToHand":          social,
	"ReactToHello":         social,
	"ReactToLove":          social,
	"ReactToNegative":      social,
	"ReactToRobotOnSide":   failure,
	"RecordingMessage":     utility,
	"RequestCharger":       failure,
	"RobotShaken":          social,
	"RollBlock":            play,
	"SDK":                  utility,
	"SeasonalHappyHoliday": social,
	"SeasonalHappyNewYear": social,
	"ShutUp":               social,
	"Sleeping":             sleep,
	"StuckOnEdge":          failure,
	"TakeAPhoto":           utility,
	"TimerCanceled":        utility,
	"TimerChecked":         utility,
	"TimerReminder":        utility,
	"TimerRinging":         utility,
	"TimerSet":             utility,
	"UnmatchedVoiceIntent": failure,
	"VolumeAdjustment":     utility,
	"Weather":              utility,
	"WhatsMyName":          utility,
}

// Feature reports whether a name is a feature that counts.
func Feature(name string) bool { return classes[name] != "" }
