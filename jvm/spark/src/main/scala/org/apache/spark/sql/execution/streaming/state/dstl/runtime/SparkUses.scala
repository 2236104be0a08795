package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.lang.invoke.{MethodHandle, MethodHandles, MethodType}
import java.lang.reflect.{Method, Modifier}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

/**
 * What this jar uses of Spark, as the build has found it in the compiled classes, and whether the Spark that is there has it:
 * members by their exact types, and nothing in a class above one of ours that ours would pass by.
 */
private[dstl] object SparkUses {
  private val Resource = "spark-uses.txt"
  private val Spark = "org.apache.spark."
  private val Ours = "org.apache.spark.sql.execution.streaming.state.dstl."

  // Each class with a logger has the methods of the Spark it was compiled against.
  private val Unimportant = Set("org.apache.spark.internal.Logging")

  /** Forms of methods that lead to one that is overridden. */
  private val LeadToOthers = Set("list(org.apache.hadoop.fs.Path)")

  private val lines: Seq[Array[String]] =
    Using.resource(scala.io.Source.fromInputStream(getClass.getResourceAsStream(Resource), UTF_8.name)) {
      _.getLines().map(_.split(' ')).toVector
    }

  /** Everything of Spark that is used and is not there, in words. */
  def lacking(): Seq[String] =
    lines.flatMap {
      case Array("uses", owner, name, descriptor) => lackingMember(owner.replace('/', '.'), name, descriptor)
      case Array("extends", name) => passedBy(load(name.replace('/', '.')))
      case line => throw new IllegalStateException(s"$Resource has a line ${line.mkString(" ")}")
    }

  /** Our classes that have one of Spark's above them. */
  def extending: Seq[Class[_]] = lines.collect { case Array("extends", name) => load(name.replace('/', '.')) }

  /** What is used, as in [[lacking]]. */
  private[dstl] def lackingMember(owner: String, name: String, descriptor: String): Option[String] =
    try Option.unless(hasMember(load(owner), name, descriptor))(s"$owner.$name $descriptor")
    catch {
      case _: ClassNotFoundException => Some(s"class $owner")
      case error @ (_: LinkageError | _: TypeNotPresentException) => Some(s"$owner.$name $descriptor ($error)")
    }

  /** What Spark would call in a class of ours past what that class overrides, or does not find in it. */
  private[dstl] def passedBy(ours: Class[_]): Seq[String] = {
    val above = ancestors(ours).filter(of => isSparks(of))
    val mine = ancestors(ours).filter(isOurs).flatMap(declaredBy)
    val names = mine.map(_.getName).toSet
    val forms = mine.map(formOf).toSet
    val unmet = above.flatMap(declaredBy).filter(method => names(method.getName)).map(formOf).distinct
      .filterNot(forms).filterNot(LeadToOthers).map(form => s"${ours.getName} does not override $form")
    val isConcrete = !Modifier.isAbstract(ours.getModifiers)
    val abstracts =
      if (isConcrete) ours.getMethods.toVector.filter(method => Modifier.isAbstract(method.getModifiers)) else Nil
    unmet ++ abstracts.map(method => s"${ours.getName} does not have ${formOf(method)}")
  }

  /** Looked up one by one: the types that all members of a class name need not be there. */
  private def hasMember(owner: Class[_], name: String, descriptor: String): Boolean = {
    val in = MethodHandles.privateLookupIn(owner, MethodHandles.lookup())
    val isMethod = descriptor.startsWith("(")
    val signature =
      MethodType.fromMethodDescriptorString(if (isMethod) descriptor else s"()$descriptor", getClass.getClassLoader)
    if (name == "<init>") isFound(in.findConstructor(owner, signature))
    else if (isMethod) isFound(in.findVirtual(owner, name, signature)) || isFound(in.findStatic(owner, name, signature))
    else {
      val of = signature.returnType
      isFound(in.findGetter(owner, name, of)) || isFound(in.findStaticGetter(owner, name, of))
    }
  }

  private def isFound(find: => MethodHandle): Boolean =
    try {
      find: Unit
      true
    } catch { case _: ReflectiveOperationException => false }

  /** What can be overridden, or overrides. */
  private[runtime] def declaredBy(of: Class[_]): Seq[Method] = of.getDeclaredMethods.toVector.filterNot { method =>
    val modifiers = method.getModifiers
    method.isSynthetic || Modifier.isPrivate(modifiers) || Modifier.isStatic(modifiers) || Modifier.isFinal(modifiers)
  }

  private[runtime] def formOf(method: Method): String =
    s"${method.getName}(${method.getParameterTypes.map(_.getName).mkString(", ")})"

  /** Whether a class is Spark's, and not only a logger. */
  private[runtime] def isSparks(of: Class[_]): Boolean =
    of.getName.startsWith(Spark) && !isOurs(of) && !Unimportant(of.getName)

  private[runtime] def isOurs(of: Class[_]): Boolean = of.getName.startsWith(Ours)

  /** The class, and all above it. */
  private[runtime] def ancestors(of: Class[_]): Seq[Class[_]] =
    (of +: (Option(of.getSuperclass).toVector ++ of.getInterfaces).flatMap(ancestors)).distinct

  private def load(name: String): Class[_] = Class.forName(name, false, getClass.getClassLoader)
}
