// SPDX-License-Identifier: Apache-2.0
import sbt._
import sbt.Keys._

/** Collects the jars that the storage tests need outside of the checkout, where `make clean` leaves them. */
object StorageJars {
  val connectorJars = taskKey[Unit]("Puts the connectors to S3, Azure and GCS into the cache of this project's tools")
  val serverJars =
    taskKey[Unit]("Puts HDFS, what starts it, Kafka, and Spark's connectors to Kafka and Delta into that cache")

  private val S3a = config("s3a").hide

  /** The connector to Azure, with the libraries that its TLS needs. */
  private val Abfs = config("abfs").hide
  private val toAzure = (hadoopVersion: String) =>
    Seq(
      ("org.apache.hadoop" % "hadoop-azure" % hadoopVersion % Abfs).intransitive(),
      ("org.wildfly.openssl" % "wildfly-openssl" % "2.1.4.Final" % Abfs).intransitive()
    )

  /** The connectors to Google's storage: its own, of which newer versions are not on Maven Central as a whole, and Hadoop's. */
  private val Gcs = config("gcs").hide
  private val HadoopGcp = config("hadoop-gcp").hide
  private val toGoogle = (hadoopVersion: String) =>
    Seq(
      ("com.google.cloud.bigdataoss" % "gcs-connector" % "4.0.0" % Gcs).classifier("shaded").intransitive(),
      ("org.apache.hadoop" % "hadoop-gcp" % hadoopVersion % HadoopGcp).intransitive()
    )

  /** Libraries that every Spark has on its class path. */
  private val sparkHas =
    Seq(
      "org.slf4j",
      "io.netty",
      "commons-codec",
      "commons-logging",
      "org.apache.httpcomponents",
      "com.fasterxml.jackson.core",
      "joda-time"
    )

  /** The connector: with the modules of the AWS SDK that it uses instead of the bundle of 300 to 700 MB. */
  private val connector = (hadoopVersion: String) =>
    ("org.apache.hadoop" % "hadoop-aws" % hadoopVersion % S3a).intransitive() +:
      (hadoopVersion match {
        case "3.5.0" =>
          // Stock Spark's best file manager on S3, for comparisons. Maven Central has none for 4.2.
          ("org.apache.spark" % "spark-hadoop-cloud_2.13" % "4.1.2" % S3a).intransitive() +:
            ("software.amazon.s3.analyticsaccelerator" % "analyticsaccelerator-s3" % "1.3.1" % S3a).intransitive() +:
            ofSdk2("2.35.4")
        case "3.4.2" => ofSdk2("2.29.52")
        // Built with 2.24.6, which exists as a bundle only.
        case "3.4.1" => ofSdk2("2.24.8")
        // It loads classes of DynamoDB, which earlier versions used for their metadata.
        case "3.3.4" =>
          modules("com.amazonaws", "1.12.262", Seq("s3", "sts", "dynamodb").map(of => s"aws-java-sdk-$of"))
        case other => sys.error(s"it is not known which AWS SDK the S3 connector of Hadoop $other needs")
      })

  private def ofSdk2(version: String) =
    modules("software.amazon.awssdk", version, Seq("s3", "s3-transfer-manager", "sts", "apache-client"))

  private def modules(organization: String, version: String, names: Seq[String]) = names.map { name =>
    (organization % name % version % S3a).excludeAll(sparkHas.map(ExclusionRule(_)): _*)
  }

  /** For the Hadoop of the chosen Spark line; those to Azure and GCS for the default line only. */
  def connectorSettings(hadoopVersion: String): Seq[Def.Setting[_]] = {
    val isDefault = hadoopVersion == SparkLine.Default.hadoop
    Seq(
      ivyConfigurations ++= Seq(S3a, Abfs, Gcs, HadoopGcp),
      libraryDependencies ++=
        connector(hadoopVersion) ++ (if (isDefault) toAzure(hadoopVersion) ++ toGoogle(hadoopVersion) else Nil),
      publish / skip := true,
      connectorJars := {
        val found = update.value
        def jars(of: Configuration) = found.select(configurationFilter(of.name))
        replace(s"${S3a.name}-$hadoopVersion", jars(S3a))
        if (isDefault) Seq(Abfs, Gcs, HadoopGcp).foreach(of => replace(of.name, jars(of)))
      }
    )
  }

  private val KafkaServer = config("kafka-server").hide
  private val Kafka = config("kafka").hide
  private val Delta = config("delta").hide

  /** For the default line of Spark. Spark has what else the connectors need. */
  private val sourcesAndSinks = {
    val spark = SparkLine.Default.version
    Seq(
      "org.apache.spark" % "spark-sql-kafka-0-10_2.13" % spark,
      "org.apache.spark" % "spark-token-provider-kafka-0-10_2.13" % spark,
      "org.apache.kafka" % "kafka-clients" % "3.9.2",
      "org.apache.commons" % "commons-pool2" % "2.13.1"
    ).map(of => (of % Kafka).intransitive()) ++
      Seq("delta-spark_4.2_2.13", "delta-storage").map(of => ("io.delta" % of % "4.4.0" % Delta).intransitive())
  }

  def serverSettings: Seq[Def.Setting[_]] = Seq(
    publish / skip := true,
    ivyConfigurations ++= Seq(KafkaServer, Kafka, Delta),
    libraryDependencies ++= sourcesAndSinks ++ Seq(
      "org.apache.kafka" % "kafka_2.13" % "4.2.0" % KafkaServer,
      "org.apache.logging.log4j" % "log4j-slf4j-impl" % "2.25.3" % KafkaServer
    ),
    serverJars := {
      val found = update.value
      replace("hdfs", (Runtime / fullClasspathAsJars).value.files)
      Seq(KafkaServer, Kafka, Delta).foreach(of => replace(of.name, found.select(configurationFilter(of.name))))
    }
  )

  /** Makes a directory of the cache hold exactly these files; a second run copies nothing. */
  private def replace(name: String, files: Seq[File]): Unit = {
    // As in Python and the shell: Java takes the home directory from the list of users instead.
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
