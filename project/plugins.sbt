addSbtPlugin("org.scalameta" % "sbt-scalafmt" % "2.6.2")
addSbtPlugin("com.eed3si9n" % "sbt-assembly" % "2.3.1")
// Reads class files; sbt-assembly brings it as well.
libraryDependencies += "org.ow2.asm" % "asm" % "9.6"
