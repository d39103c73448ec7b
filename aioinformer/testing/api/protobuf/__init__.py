"""Objects as kubectl sends some of them: protobuf."""
