"""robot_pb2 is made of infra/api/robotpb/robot.proto by protoc 3.21 (Debian's protobuf-compiler), in this folder's parent's parent:

    protoc -Ikennel/_pb=../../infra/api/robotpb --python_out=. --pyi_out=. kennel/_pb/robot.proto
"""
