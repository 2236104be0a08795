// SPDX-License-Identifier: Apache-2.0
import java.util.Properties

import sbt._
import sbt.Keys._

/** The publisher's part of a POM, from project/publisher.properties; empty properties are left out. */
object Publisher {
  val settings: Seq[Def.Setting[_]] = {
    val properties = new Properties
    IO.load(properties, file("project/publisher.properties"))
    def value(key: String): Option[String] = Option(properties.getProperty(key)).map(_.trim).filter(_.nonEmpty)
    Seq(
      organization := value("namespace").getOrElse((ThisBuild / organization).value),
      homepage := value("homepage").map(url),
      scmInfo := value("repository").map(address => ScmInfo(url(address), s"scm:git:$address.git")),
      // sbt requires an address with each.
      developers :=
        (for (name <- value("developer"); email <- value("email"); page <- value("homepage"))
          yield Developer(name, name, email, url(page))).toList,
      versionScheme := Some("early-semver")
    )
  }
}
