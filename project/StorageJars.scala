import sbt._
import sbt.Keys._

/** Collects the jars that the storage tests need outside of the checkout, where `make clean` leaves them. */
object StorageJars {
  val connectorJars = taskKey[Unit]("Puts the connectors to S3 and to Azure into the cache of this project's tools")
  val serverJars = taskKey[Unit]("Puts HDFS, and what starts it, into the cache of this project's tools")

  /** The connector: with the modules of the AWS SDK that it uses instead of the bundle of 686 MB. */
  private val S3a = config("s3a").hide
  private val sdkVersion = "2.35.4"

  /** The connector to Azure, and what its TLS cannot be loaded without. */
  private val Abfs = config("abfs").hide
  private val toAzure = (hadoopVersion: String) =>
    Seq(
      ("org.apache.hadoop" % "hadoop-azure" % hadoopVersion % Abfs).intransitive(),
      ("org.wildfly.openssl" % "wildfly-openssl" % "2.1.4.Final" % Abfs).intransitive()
    )

  /** What every Spark has on its class path already. */
  private val sparkHas = Seq("org.slf4j", "io.netty", "commons-codec", "commons-logging", "org.apache.httpcomponents")

  private val connector = (hadoopVersion: String) =>
    ("org.apache.hadoop" % "hadoop-aws" % hadoopVersion % S3a).intransitive() +:
      // Stock Spark's best file manager on S3, to compare with. There is none of 4.2 on Maven Central.
      ("org.apache.spark" % "spark-hadoop-cloud_2.13" % "4.1.2" % S3a).intransitive() +:
      ("software.amazon.s3.analyticsaccelerator" % "analyticsaccelerator-s3" % "1.3.1" % S3a).intransitive() +:
      Seq("s3", "s3-transfer-manager", "sts", "apache-client").map { module =>
        ("software.amazon.awssdk" % module % sdkVersion % S3a)
          .excludeAll(sparkHas.map(ExclusionRule(_)): _*)
      }

  def connectorSettings(hadoopVersion: String): Seq[Def.Setting[_]] = Seq(
    ivyConfigurations ++= Seq(S3a, Abfs),
    libraryDependencies ++= connector(hadoopVersion) ++ toAzure(hadoopVersion),
    publish / skip := true,
    connectorJars := {
      val found = update.value
      Seq(S3a, Abfs).foreach(of => replace(of.name, found.select(configurationFilter(of.name))))
    }
  )

  def serverSettings: Seq[Def.Setting[_]] = Seq(
    publish / skip := true,
    serverJars := replace("hdfs", (Runtime / fullClasspathAsJars).value.files)
  )

  /** Makes a directory of the cache hold these files and no others; a second run copies nothing. */
  private def replace(name: String, files: Seq[File]): Unit = {
    // As Python and the shell have it: to Java, home is what stands in the list of users.
    val home = sys.env.get("HOME").map(file).getOrElse(Path.userHome)
    val cache = sys.env.get("SPARK_DSTL_CACHE").map(file).getOrElse(home / ".cache" / "spark-dstl")
    val directory = cache / "jars" / name
    val wanted = files.map(file => directory / file.getName -> file).toMap
    IO.createDirectory(directory)
    directory.listFiles().filterNot(wanted.contains).foreach(IO.delete(_))
    wanted.foreach { case (copy, file) =>
      if (copy.length != file.length || copy.lastModified < file.lastModified) IO.copyFile(file, copy)
    }
  }
}
