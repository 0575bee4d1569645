package faultcode

import (
	"strings"

	"kennel/ota"
)

// The faults that programs raise by name, in the System domain.
const (
	ShutdownButton     Code = 700
	ShutdownGyro       Code = 701
	ShutdownBatteryLow Code = 702
	ShutdownSensor703  Code = 703
	ShutdownSensor704  Code = 704
	ShutdownBatteryHot Code = 705
	AnimFailed         Code = 800
	CubeFirmware       Code = 801
	CameraCalibration  Code = 840
	CloudCertificate   Code = 850
	CloudTokenStore    Code = 851
	CloudESN           Code = 852
	MicFrontRight      Code = 870
	MicFrontLeft       Code = 871
	MicBackRight       Code = 872
	MicBackLeft        Code = 873
	CliffFrontRight    Code = 890
	CliffFrontLeft     Code = 891
	CliffBackRight     Code = 892
	CliffBackLeft      Code = 893
	TimeOfFlight       Code = 894
	Touch              Code = 895
	BodySilent         Code = 898
	NoBody             Code = 899
	Audio              Code = 911
	SwitchboardFailed  Code = 913
	EngineFailed       Code = 914
	EngineHung         Code = 915
	RobotFailed        Code = 916
	AnimHung           Code = 917
	Systemd            Code = 919
	GatewayCert        Code = 920
	GatewayFailed      Code = 921
	CloudFailed        Code = 923
	IMU                Code = 960
	WiFi               Code = 970
	CameraHangs        Code = 980
	CameraSilent       Code = 981
	Display            Code = 990
)

// systemTexts: annex F, tables 603 and 606, without the codes of updates, whose words are in ota; where one entry lists several causes they are shortened to one sentence. 919 is listed twice
// there, the second time empty.
var systemTexts = withUpdates(map[Code]string{
	1:                  "Switchboard: unknown status.",
	2:                  "Switchboard: over the air update is in progress.",
	3:                  "Switchboard: over the air update has completed.",
	4:                  "Switchboard: rebooting.",
	5:                  "Switchboard: other over the air update error.",
	10:                 "OS: Unknown system error.",
	ShutdownButton:     "The robot was shutdown because the button was pressed.",
	ShutdownGyro:       "The gyroscope sensor is out of range or failed (it wasn't able to calibrate), so the robot shutdown.",
	ShutdownBatteryLow: "The robot was shutdown because the battery voltage was too low.",
	ShutdownSensor703:  "Internal sensor out of range or failed.",
	ShutdownSensor704:  "Internal sensor out of range or failed.",
	ShutdownBatteryHot: "The robot was shutdown because the battery was too hot to safely operate.",
	AnimFailed:         "Vic-anim was unable to start or crashed.",
	CubeFirmware:       "The process to update the cube firmware failed.",
	CameraCalibration:  "The camera calibration is missing.",
	CloudCertificate:   "There is a problem with the cloud certificate.",
	CloudTokenStore:    "There is a problem with the cloud token store.",
	CloudESN:           "There is a problem reading the cloud electronic serial number (ESN).",
	MicFrontRight:      "The front right MEMS microphone failed during power-on self test.",
	MicFrontLeft:       "The front left MEMS microphone failed during power-on self test.",
	MicBackRight:       "The back right MEMS microphone failed during power-on self test.",
	MicBackLeft:        "The back left MEMS microphone failed during power-on self test.",
	CliffFrontRight:    "The front right cliff sensor failed during power-on self test.",
	CliffFrontLeft:     "The front left cliff sensor failed during power-on self test.",
	CliffBackRight:     "The back right cliff sensor failed during power-on self test.",
	CliffBackLeft:      "The back left cliff sensor failed during power-on self test.",
	TimeOfFlight:       "The time-of-flight distance sensor failed during power-on self test.",
	Touch:              "The touch sensor failed during power-on self test.",
	BodySilent:         "The main board is unable to communicate with the body-board. The cable between boards may be disconnected.",
	NoBody:             "No body: the main board is unable to communicate with the body-board. The cable between boards may be disconnected.",
	Audio:              "The audio system is not working properly.",
	SwitchboardFailed:  "Vic-switchboard was unable to start or crashed.",
	EngineFailed:       "Vic-engine was unable to start or crashed, or can't read some part of the behavior tree.",
	EngineHung:         "Vic-engine stopped responding.",
	RobotFailed:        "Vic-robot was unable to start or crashed.",
	AnimHung:           "Vic-anim stopped responding.",
	Systemd:            "Systemd is not working properly.",
	GatewayCert:        "Vic-gateway-cert was unable to generate a x509 certificate for vic-gateway.",
	GatewayFailed:      "Vic-gateway was unable to start or crashed.",
	CloudFailed:        "Vic-cloud was unable to start or crashed.",
	IMU:                "The IMU (accelerometer and gyroscope) has failed, or is not communicating properly.",
	WiFi:               "The WiFi hardware has failed.",
	CameraHangs:        "The camera hangs when its stream is stopped; its process must be killed and started again.",
	CameraSilent:       "The camera stopped responding; its process must be killed and started again.",
	Display:            "The LCD display is not communicating properly with the processor.",
})

// withUpdates adds the codes of updates.
func withUpdates(texts map[Code]string) map[Code]string {
	for _, c := range ota.Codes() {
		w := c.Words()
		texts[Code(c)] = strings.ToUpper(w[:1]) + w[1:] + "."
	}
	return texts
}

// playpenTexts: annex F, table 604
var playpenTexts = map[Code]string{
	0:  "Unknown: Not possible.",
	1:  "Success: Passed playpen.",
	2:  "There was a problem with one of the CLAD data structures. This error should not happen.",
	3:  "The lift or head failed. This error should not happen.",
	4:  "The robot is not detecting its charger or not charging. Make sure charger is plugged in; Check charge contacts/circuit.",
	5:  "The charger is unavailable. This error should not happen.",
	6:  "The charger is not connected. This error should not happen.",
	7:  "The IMU is faulty or not communicating. Check/replace IMU. Maybe robot is shaking/moved while on charger.",
	8:  "Still on charger. This error should not happen.",
	9:  "Failed to go to the calibration pose. This error should not happen.",
	10: "The robot saw a cliff and then stopped seeing it. Check cliff sensors; Check cliff slot in playpen; Check playpen surface for dirt.",
	11: "The robot detected a cliff where there is none. Check cliff sensors; Check playpen surface for dirt.",
	12: "The robot is not in the calibration pose. This error should not happen.",
	13: "The calibration has failed. The robot is seeing the calibration target but calibration is taking too long. Check calibration " +
		"target; Check camera position and lens.",
	14: "The camera calibrated but the calibration is outside normal range. Check camera position and lens.",
	15: "Failed to write camera calibration data to the robot non-volatile storage. Should never happen.",
	16: "Failed to write camera calibration image data to the robot non-volatile storage. Should never happen.",
	17: "Failed to write calibration pose data to the robot non-volatile storage. Should never happen.",
	18: "Too many calibration images. Not possible.",
	19: "Calibration pose failed. Not possible.",
	20: "Read tool code failed. Not possible.",
	21: "Tool code positions out of range. Not possible.",
	22: "Tool code write failed. Not possible.",
	23: "Goto pre pickup pose action failed. Not possible.",
	24: "Not in pre pickup pose. Not possible.",
	25: "Not seeing cube to pickup. Check that the cube is in correct spot; Check the camera; Check the wheels if robot is not facing the cube.",
	26: "Seeing cube to pickup but robot thinks the cube is somewhere else. Check that the cube is in correct spot; Check the camera position.",
	27: "Failed to pickup cube. Check the cube position; check the lift motor/gearbox.",
	28: "Failed to place cube. Check the lift motor/gearbox.",
	29: "Unexpected observed object. Not possible.",
	30: "Goto pre mount charger pose action failed. Not possible.",
	31: "The charger was not found. Not possible.",
	32: "The charger dock failed. Not possible.",
	33: "Queue action failed. Not possible.",
	34: "A motor randomly calibrated. Check for issue with all motors: Sticky gearbox? Encoder problem?",
	35: "Failed to write test result data to the robot non-volatile storage. Should never happen.",
	36: "A test timed out. Some step of playpen took too long and never completed. Try rerunning.",
	37: "The test was cancelled. Not possible.",
	38: "The robot detected being picked up. Was the robot picked up during the test or lifted off the ground in some way? Check cliff " +
		"sensors; Check IMU.",
	39: "Tool code images write failed. Not possible.",
	40: "The touch sensor readings are not stable, too noisy. Check touch sensor.",
	41: "Failed to write cube pose data to the robot non-volatile storage. Should never happen.",
	42: "The lift motor randomly calibrated. Check lift motor/gearbox.",
	43: "The head motor randomly calibrated. Check head motor/gearbox.",
	44: "Touch sensor readings are too small or too large. Check touch sensor.",
	45: "The robot did not pass all previous fixtures. Run robot through previous fixtures.",
	46: "The robot has not been tested. Not possible.",
	47: "The head/lift motor failed to calibrate. Check head/lift motor/gearbox.",
	48: "Failed to write birth certificate data to the robot non-volatile storage. Should never happen.",
	49: "Failed to write data to the robot non-volatile storage. Should never happen.",
	50: "Failed to write data to the robot non-volatile storage. Should never happen.",
	51: "There are too many tool code images. Not possible.",
	52: "Failed to write calibration meta information data to robot. This should never happen.",
	53: "Failed to write IMU data to robot. This should never happen.",
	54: "No Bluetooth LE advertising packet was received from a cube. Check battery of cube; Check Bluetooth LE radio on robot.",
	55: "Touch sensor readings standard deviation is too large. Check the touch sensor.",
	56: "Failed to compute the camera pose. Not possible.",
	57: "The camera pose is out of range. Not possible.",
	58: "Failed to play sound. Not possible.",
	59: "Was unable to read the results of the previous test. Not possible.",
	60: "The wrong firmware version. Not possible.",
	61: "A cliff sensor value is too high. Not possible.",
	62: "A cliff sensor value is too low. Not possible.",
	63: "The robot did not backup straight while picking up the cube. Check wheel treads/motors/gearboxes.",
	64: "The battery is too low. Check battery; Leave robot on a charger for a couple of minutes to charge.",
	65: "No IMU data. Not possible.",
	66: "The robot did not backup straight after picking up the cube. Check the wheel treads/motors/gearboxes.",
	67: "The wrong body hardware version. This error should not happen.",
	68: "There is no body hardware version information. This error should not happen.",
	69: "The non-volatile storage erase operation failed. Not possible.",
	70: "Was unable to parse the header of a record. Not possible.",
	71: "No WiFi access points were found. Check the radio on the robot.",
	72: "Unknown body color. Not possible.",
	73: "Failed to write data to robot. This should never happen.",
	74: "The behavior is not runnable. Software bug. Try rerunning.",
	75: "The robot is not seeing the camera calibration target. Check camera position and lens.",
	76: "The robot detected being on a charger randomly. Check charge contacts/circuit.",
	77: "Head motor randomly disabled. Check head motor/gearbox.",
	78: "Lift motor randomly disabled. Check lift motor/gearbox.",
	79: "Some motor randomly disabled. Check all motors/gearboxes.",
	80: "The robot detected unexpected movement. It probably ran into something in playpen. Check wheels; Check IMU.",
	81: "Some action that the robot was trying to do failed.",
	82: "The robot failed to detect front cliffs. Check the front two cliff sensors.",
	83: "The robot failed to detect back cliffs. Check the back two cliff sensors.",
	84: "The robot failed to undetect front cliffs after detecting them. Check the front two cliff sensors.",
	85: "The robot failed to undetect back cliffs after detecting them. Check the back two cliff sensors.",
	86: "The robot thinks that the cube is too low in the ground. Check the cube position; Check camera position/rotation.",
	87: "The robot thinks that the cube is too high above the ground. Check the cube position; Check camera position/rotation.",
	88: "The camera calibrated but the calibration is outside normal range. Check camera position and lens.",
	89: "The robot is not seeing the distance sensor marker. Check the robots position at the time of failure, why wasn't it seeing the " +
		"marker. Check the distance sensor marker.",
	90: "The robot is seeing the distance sensor marker too close or far away. The robot is too far or close to the distance sensor marker; " +
		"check the wheels.",
	91: "The front right microphone is not working. Check the front right microphone.",
	92: "The front left microphone is not working. Check the front left microphone.",
	93: "The back right microphone is not working. Check the back right microphone.",
	94: "The back left microphone is not working. Check the back left microphone.",
	95: "Either the speaker is not working or all of the microphones are not working. If the robot played a sound, check all of the " +
		"microphones, otherwise check the speaker.",
	96: "Never received FFT result from the microphone check.",
	97: "The touch sensor reporting unexpected out of range values. Check the touch sensor.",
	98: "The time-of-flight distance sensor reporting incorrect values. Check the distance sensor.",
	99: "The certificates were checked but have been found to be invalid. Invalid certificates written by previous fixture. Run robot " +
		"through previous fixtures.",
}

// rampostTexts: annex F, table 605
var rampostTexts = map[Code]string{
	16: "Couldn't get version from syscon.",
	17: "Failed to erase.",
	18: "Couldn't send data to download.",
	19: "App failed verification check or could not be verified.",
}
